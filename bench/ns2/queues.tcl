# Section 5.1 of RTT-AQM's paper for ns-2.35: ns queues.tcl KIND SEED [PACE], KIND of red, ared, rem; the 20 flows that come
# after 100 s start PACE seconds apart (0.1).
#
# 30 Reno flows with ECN over 10 Mbit/s, 50 from 100 to 200 s, 300 s in all, as papers/rtt-aqm/single-link.toml
# has it. Every packet that joins or leaves the queue is told on standard output, in ns-2's trace format.

lassign $argv kind seed pace
if {$pace eq ""} {
    set pace 0.1
}
ns-random $seed
set header 40
set packet 1040.0

Agent/TCP set packetSize_ 1000
Agent/TCP set tcpip_base_hdr_size_ $header
Agent/TCP set ecn_ 1
# All else, the window of 20 packets among it, is ns-2's default.

Queue/RED set bytes_ true
Queue/RED set queue_in_bytes_ true
Queue/RED set mean_pktsize_ [expr {int($packet)}]
Queue/RED set thresh_ [expr {40000 / $packet}]
Queue/RED set maxthresh_ [expr {120000 / $packet}]
Queue/RED set q_weight_ 0
Queue/RED set linterm_ 10
Queue/RED set setbit_ true
# By default packets are dropped rather than marked where the probability is above 0.1.
Queue/RED set use_mark_p_ false
Queue/RED set adaptive_ [expr {$kind eq "ared"}]

Queue/REM set markpkts_ true
Queue/REM set qib_ false
Queue/REM set mean_pktsize_ [expr {int($packet)}]
Queue/REM set pbo_ [expr {100000 / $packet}]
Queue/REM set pupdtime_ 0.002

set ns [new Simulator]
foreach name {sender r1 r2 receiver} {
    set $name [$ns node]
}
set discipline [dict get {red RED ared RED rem REM} $kind]
$ns simplex-link $r1 $r2 10Mb 10ms $discipline
$ns simplex-link $r2 $r1 10Mb 10ms DropTail
$ns duplex-link $sender $r1 100Mb 2ms DropTail
$ns duplex-link $r2 $receiver 100Mb 2ms DropTail
$ns queue-limit $r1 $r2 144
foreach {a b} [list $r2 $r1 $sender $r1 $r1 $sender $r2 $receiver $receiver $r2] {
    $ns queue-limit $a $b 100000
}

proc add_flow {start stop} {
    global ns sender receiver
    set source [new Agent/TCP/Reno]
    set sink [new Agent/TCPSink]
    $ns attach-agent $sender $source
    $ns attach-agent $receiver $sink
    $ns connect $source $sink
    set application [new Application/FTP]
    $application attach-agent $source
    $ns at $start "$application start"
    if {$stop ne "never"} {
        $ns at $stop "$application stop"
    }
}

for {set nth 0} {$nth < 30} {incr nth} {
    add_flow [expr {0.1 * $nth}] never
}
for {set nth 0} {$nth < 20} {incr nth} {
    add_flow [expr {100 + $pace * $nth}] [expr {200 + $pace * $nth}]
}
$ns trace-queue $r1 $r2 stdout
$ns at 300 "exit 0"
$ns run
