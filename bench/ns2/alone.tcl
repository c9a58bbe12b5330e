# One flow alone over a drop-tail link: ns alone.tcl ALGORITHM RATE_BPS RTT_S LIMIT_PACKETS SECONDS WARMUP [delayed]
#
# Prints goodput in bit/s, window cuts, timeouts, and the mean and largest number of packets that waited,
# all after the warm-up. Packets have 1448 bytes of payload and 52 of headers; the limit counts the packet being sent.

lassign $argv algorithm rate rtt limit seconds warmup delayed
remove-all-packet-headers
add-packet-header IP TCP Flags

set payload 1448
Agent/TCP set packetSize_ $payload
# ns-2 adds the 10 bytes of timestamps itself.
Agent/TCP set tcpip_base_hdr_size_ 42
Agent/TCP set window_ 100000
Agent/TCP set windowInit_ 2
Agent/TCP set timestamps_ true
Agent/TCP set tcpTick_ 0.001
Agent/TCP set minrto_ 0.2
Agent/TCP set rtxcur_init_ 3.0
Agent/TCPSink set packetSize_ 52
Agent/TCPSink set ts_echo_rfc1323_ true

set ns [new Simulator]
set from [$ns node]
set to [$ns node]
$ns simplex-link $from $to $rate [expr {$rtt / 2.0}] DropTail
$ns simplex-link $to $from $rate [expr {$rtt / 2.0}] DropTail
$ns queue-limit $from $to $limit
$ns queue-limit $to $from 100000000

set sender [new Agent/TCP/Linux]
set receiver [new Agent/[expr {$delayed eq "delayed" ? "TCPSink/Sack1/DelAck" : "TCPSink/Sack1"}]]
$ns attach-agent $from $sender
$ns attach-agent $to $receiver
$ns connect $sender $receiver
$ns at 0 "$sender select_ca $algorithm"
set application [new Application/FTP]
$application attach-agent $sender
$ns at 0 "$application start"

set monitor [$ns monitor-queue $from $to ""]
set waiting [$monitor get-pkts-integrator]
set largest 0
proc watch {} {
    global ns monitor largest
    if {[$monitor set pkts_] > $largest} {
        set largest [$monitor set pkts_]
    }
    $ns at [expr {[$ns now] + 0.001}] watch
}
proc begin {} {
    global ns sender waiting acked cuts timeouts area
    set acked [$sender set ack_]
    set cuts [$sender set ncwndcuts_]
    set timeouts [$sender set nrexmit_]
    $waiting newpoint [$ns now] [$waiting set lasty_]
    set area [$waiting set sum_]
    watch
}
proc finish {} {
    global ns sender waiting acked cuts timeouts area largest payload seconds warmup
    $waiting newpoint [$ns now] [$waiting set lasty_]
    set time [expr {$seconds - $warmup}]
    puts [format "%.0f %d %d %.2f %d" \
        [expr {([$sender set ack_] - $acked) * $payload * 8.0 / $time}] \
        [expr {[$sender set ncwndcuts_] - $cuts}] \
        [expr {[$sender set nrexmit_] - $timeouts}] \
        [expr {([$waiting set sum_] - $area) / $time}] $largest]
    exit 0
}
$ns at $warmup begin
$ns at $seconds finish
$ns run
