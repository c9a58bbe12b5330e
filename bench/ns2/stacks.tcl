# TCP Reno with ECN and without SACK for ns-2.35: ns stacks.tcl start KIND SEED, or ns stacks.tcl loss SHARE SEED.
#
# start: 30 flows over 10 Mbit/s in their first 20 s, as section 5.1 of RTT-AQM's paper has them, behind KIND of red, ared, rem, droptail.
# loss: one flow for 120 s over 10 Mbit/s, 60 ms and 50 packets of tail drop; SHARE of its packets is lost at random.
# Prints segments acknowledged, retransmissions, packets dropped by the queue, and the mean number of those that waited.

lassign $argv what kind seed
# The first number that follows a small seed is small too, and would always lose the first packet.
ns-random [expr {$seed * 104729}]
set packet 1040.0
set ns [new Simulator]
foreach name {sender r1 r2 receiver} {
    set $name [$ns node]
}
Agent/TCP set packetSize_ 1000
Agent/TCP set tcpip_base_hdr_size_ 40
Agent/TCP set ecn_ [expr {$what eq "start"}]
set flows 1
set seconds 120
set limit 50
set discipline DropTail
set access 10
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
    Agent/TCP set window_ 10000
}
$ns simplex-link $r1 $r2 10Mb 10ms $discipline
$ns simplex-link $r2 $r1 10Mb 10ms DropTail
$ns duplex-link $sender $r1 100Mb ${access}ms DropTail
$ns duplex-link $r2 $receiver 100Mb ${access}ms DropTail
$ns queue-limit $r1 $r2 $limit
foreach {a b} [list $r2 $r1 $sender $r1 $r1 $sender $r2 $receiver $receiver $r2] {
    $ns queue-limit $a $b 100000
}
if {$what eq "loss"} {
    set errors [new ErrorModel]
    $errors set rate_ $kind
    $errors unit pkt
    $errors ranvar [new RandomVariable/Uniform]
    $errors drop-target [new Agent/Null]
    $ns lossmodel $errors $r2 $receiver
}
for {set nth 0} {$nth < $flows} {incr nth} {
    set source [new Agent/TCP/Reno]
    set sink [new Agent/TCPSink]
    $ns attach-agent $sender $source
    $ns attach-agent $receiver $sink
    $ns connect $source $sink
    set application [new Application/FTP]
    $application attach-agent $source
    $ns at [expr {0.1 * $nth}] "$application start"
    lappend sources $source
}
set monitor [$ns monitor-queue $r1 $r2 ""]
proc finish {} {
    global ns sources monitor seconds
    set acked 0
    set retransmitted 0
    foreach source $sources {
        incr acked [$source set ack_]
        incr retransmitted [$source set nrexmitpack_]
    }
    set waiting [$monitor get-pkts-integrator]
    $waiting newpoint [$ns now] [$waiting set lasty_]
    puts "$acked $retransmitted [$monitor set pdrops_] [expr {[$waiting set sum_] / $seconds}]"
    exit 0
}
$ns at $seconds finish
$ns run
