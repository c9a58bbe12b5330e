# CUBIC beside Compound in ns-2.35's Linux TCP: ns pair.tcl RATE_MBPS RTT_MS PACKETS QUEUE DELAY_US WARMUP SECONDS SEED.
#
# Two flows, of packets of 1500 bytes with SACK and without delayed ACKs, share a link with a buffer of PACKETS packets;
# QUEUE is DropTail or RED between a quarter and three quarters of the buffer. Prints the packets of CUBIC and of Compound that
# were acknowledged between WARMUP and SECONDS.

lassign $argv rate rtt limit queue delay warmup seconds seed
# The first numbers that follow a small seed are small too.
ns-random [expr {$seed * 104729}]
set ns [new Simulator]
# As alone.tcl has them: ns-2 adds the 10 bytes of timestamps itself.
set payload 1448
Agent/TCP set packetSize_ $payload
Agent/TCP set tcpip_base_hdr_size_ 42
Agent/TCP set timestamps_ true
Agent/TCP set tcpTick_ 0.001
Agent/TCP set window_ 100000
# A host waits up to DELAY_US before it sends.
Agent/TCP set overhead_ [expr {$delay / 1e6}]
Agent/TCPSink set packetSize_ 52
Agent/TCPSink set ts_echo_rfc1323_ true
Queue/RED set bytes_ false
Queue/RED set queue_in_bytes_ false
Queue/RED set thresh_ [expr {$limit / 4.0}]
Queue/RED set maxthresh_ [expr {$limit * 0.75}]
Queue/RED set q_weight_ 0.002
Queue/RED set linterm_ 10
Queue/RED set gentle_ false
Queue/RED set wait_ false
Queue/RED set mean_pktsize_ 1500
set router [$ns node]
set receiver [$ns node]
$ns simplex-link $router $receiver ${rate}Mb 0ms $queue
$ns simplex-link $receiver $router ${rate}Mb 0ms DropTail
$ns queue-limit $router $receiver $limit
$ns queue-limit $receiver $router 100000
foreach algorithm {cubic compound} {
    set sender [$ns node]
    $ns duplex-link $sender $router 1Gb [expr {$rtt / 2.0}]ms DropTail
    $ns queue-limit $sender $router 100000
    $ns queue-limit $router $sender 100000
    set source [new Agent/TCP/Linux]
    set sink [new Agent/TCPSink/Sack1]
    $ns attach-agent $sender $source
    $ns attach-agent $receiver $sink
    $ns connect $source $sink
    $ns at 0 "$source select_ca $algorithm"
    set application [new Application/FTP]
    $application attach-agent $source
    $ns at [expr {[ns-random] / 2147483647.0 * 0.2}] "$application start"
    lappend sources $source
}
proc acked {} {
    global sources
    return [lmap source $sources {$source set ack_}]
}
proc finish {} {
    global before
    foreach begin $before end [acked] {
        puts [expr {$end - $begin}]
    }
    exit 0
}
$ns at $warmup {set before [acked]}
$ns at $seconds finish
$ns run
