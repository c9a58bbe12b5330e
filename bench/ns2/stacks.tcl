# TCP senders of ns-2.35: ns stacks.tcl WHAT KIND SEED.
#
# start: Reno with ECN and without SACK, 30 flows over 10 Mbit/s in their first 20 s, as section 5.1 of RTT-AQM's paper
#        has them, behind KIND of red, ared, rem, droptail.
# loss:  one such flow, without ECN, over 10 Mbit/s, 60 ms and 50 packets of tail drop, for 1200 s; KIND is the share of
#        its packets that is lost at random.
# vegas: the same for the Vegas of ns-2's Linux TCP, with SACK and delayed ACKs.
# cubic: CUBIC of ns-2's Linux TCP alone over 50 Mbit/s, 100 ms and KIND packets of tail drop, for 120 s.
# waits: the same, where the sender waits up to 480 us, two packets' transmission times, before it sends.
# Prints payload acknowledged in bytes, retransmissions, packets dropped by the queue, and the mean number of those that waited.

lassign $argv what kind seed
# The first number that follows a small seed is small too, and would always lose the first packet.
ns-random [expr {$seed * 104729}]
set packet 1040.0
set payload 1000
set ns [new Simulator]
foreach name {sender r1 r2 receiver} {
    set $name [$ns node]
}
Agent/TCP set packetSize_ 1000
Agent/TCP set tcpip_base_hdr_size_ 40
Agent/TCP set ecn_ [expr {$what eq "start"}]
set flows 1
set seconds 1200
set limit 50
set discipline DropTail
set rate 10Mb
set middle 10
set access 10
set agent Agent/TCP/Reno
set sink_agent Agent/TCPSink
if {$what eq "start"} {
    set flows 30
    set seconds 20
    set limit 144
    set access 2
    Queue/RED set bytes_ true
    Queue/RED set queue_in_bytes_ true
    Queue/RED set mean_pktsize_ [expr {int($packet)}]
    Queue/RED set thresh_ [expr {40000 / $packet}]
    Queue/RED set maxthresh_ [expr {120000 / $packet}]
    Queue/RED set q_weight_ 0
    Queue/RED set linterm_ 10
    Queue/RED set setbit_ true
    Queue/RED set use_mark_p_ false
    Queue/RED set adaptive_ [expr {$kind eq "ared"}]
    Queue/REM set markpkts_ true
    Queue/REM set qib_ false
    Queue/REM set mean_pktsize_ [expr {int($packet)}]
    Queue/REM set pbo_ [expr {100000 / $packet}]
    Queue/REM set pupdtime_ 0.002
    set discipline [dict get {red RED ared RED rem REM droptail DropTail} $kind]
} else {
    Agent/TCP set window_ 100000
}
set algorithm $what
if {$what eq "waits"} {
    set algorithm cubic
    Agent/TCP set overhead_ 0.00048
}
if {$algorithm in {vegas cubic}} {
    # As alone.tcl has them: ns-2 adds the 10 bytes of timestamps itself.
    set payload 1448
    Agent/TCP set packetSize_ $payload
    Agent/TCP set tcpip_base_hdr_size_ 42
    Agent/TCP set timestamps_ true
    Agent/TCP set tcpTick_ 0.001
    Agent/TCPSink set packetSize_ 52
    Agent/TCPSink set ts_echo_rfc1323_ true
    set agent Agent/TCP/Linux
    set sink_agent Agent/TCPSink/Sack1
}
if {$what eq "vegas"} {
    set sink_agent Agent/TCPSink/Sack1/DelAck
}
if {$algorithm eq "cubic"} {
    set seconds 120
    set limit $kind
    set rate 50Mb
    set middle 48
    set access 1
}
$ns simplex-link $r1 $r2 $rate ${middle}ms $discipline
$ns simplex-link $r2 $r1 $rate ${middle}ms DropTail
$ns duplex-link $sender $r1 100Mb ${access}ms DropTail
$ns duplex-link $r2 $receiver 100Mb ${access}ms DropTail
$ns queue-limit $r1 $r2 $limit
foreach {a b} [list $r2 $r1 $sender $r1 $r1 $sender $r2 $receiver $receiver $r2] {
    $ns queue-limit $a $b 100000
}
if {$what in {loss vegas}} {
    set errors [new ErrorModel]
    $errors set rate_ $kind
    $errors unit pkt
    $errors ranvar [new RandomVariable/Uniform]
    $errors drop-target [new Agent/Null]
    $ns lossmodel $errors $r2 $receiver
}
for {set nth 0} {$nth < $flows} {incr nth} {
    set source [new $agent]
    set sink [new $sink_agent]
    $ns attach-agent $sender $source
    $ns attach-agent $receiver $sink
    $ns connect $source $sink
    if {$agent eq "Agent/TCP/Linux"} {
        $ns at 0 "$source select_ca $algorithm"
    }
    set application [new Application/FTP]
    $application attach-agent $source
    $ns at [expr {0.1 * $nth}] "$application start"
    lappend sources $source
}
set monitor [$ns monitor-queue $r1 $r2 ""]
proc finish {} {
    global ns sources monitor seconds payload
    set acked 0
    set retransmitted 0
    foreach source $sources {
        incr acked [$source set ack_]
        incr retransmitted [$source set nrexmitpack_]
    }
    set waiting [$monitor get-pkts-integrator]
    $waiting newpoint [$ns now] [$waiting set lasty_]
    puts "[expr {$acked * $payload}] $retransmitted [$monitor set pdrops_] [expr {[$waiting set sum_] / $seconds}]"
    exit 0
}
$ns at $seconds finish
$ns run
