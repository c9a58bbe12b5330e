# Simulates a network described by a text file: ns network.tcl FILE SECONDS [count]
#
#   link FROM TO RATE_BPS DELAY_NS droptail PACKETS        FROM -> TO and back; the way back waits without bound
#   link FROM TO RATE_BPS DELAY_NS red BYTES MIN MAX       thresholds in bytes; marks where it can
#   bottleneck FROM TO                                     whose packets are counted
#   flow FROM TO START_NS                                  TCP without end
#
# With "count" it prints how many packets the bottlenecks and all links sent. That costs time, so the
# runs that are timed go without; both take the same course.

lassign $argv file seconds count
remove-all-packet-headers
add-packet-header IP TCP Flags

set payload 1000
set header 40
Agent/TCP set packetSize_ $payload
Agent/TCP set tcpip_base_hdr_size_ $header
Agent/TCP set window_ 6291
Agent/TCP set windowInit_ 10
Agent/TCP set tcpTick_ 0.001
Agent/TCP set minrto_ 0.2
Agent/TCP set rtxcur_init_ 1.0
Agent/TCPSink set packetSize_ $header
# Every packet is acknowledged: held-back acknowledgements have other timers in each simulator.
Queue/RED set setbit_ true
Queue/RED set gentle_ true
Queue/RED set bytes_ false
Queue/RED set queue_in_bytes_ true
Queue/RED set mean_pktsize_ [expr {$payload + $header}]
Queue/RED set q_weight_ 0.002
Queue/RED set linterm_ 10
Queue/RED set wait_ false
Queue/RED set mark_p_ 1.0

set ns [new Simulator]
set unbounded 100000000

proc node {name} {
    global ns nodes
    if {![info exists nodes($name)]} {
        set nodes($name) [$ns node]
    }
    return $nodes($name)
}

proc add_link {from to rate delay kind limit {min 0} {max 0}} {
    global ns unbounded payload header
    set a [node $from]
    set b [node $to]
    set size [expr {double($payload + $header)}]
    set delay_s [expr {$delay / 1e9}]
    $ns simplex-link $b $a $rate $delay_s DropTail
    $ns queue-limit $b $a $unbounded
    if {$kind eq "red"} {
        Agent/TCP set ecn_ 1
        Queue/RED set thresh_ [expr {$min / $size}]
        Queue/RED set maxthresh_ [expr {$max / $size}]
        $ns simplex-link $a $b $rate $delay_s RED
        $ns queue-limit $a $b [expr {int($limit / $size)}]
    } else {
        $ns simplex-link $a $b $rate $delay_s DropTail
        $ns queue-limit $a $b $limit
    }
}

proc add_flow {from to start} {
    global ns
    # Sack1 loses some percent more time to timeouts after slow start than the other simulators do.
    set sender [new Agent/TCP/Linux]
    $ns at 0 "$sender select_ca reno"
    set receiver [new Agent/TCPSink/Sack1]
    $ns attach-agent [node $from] $sender
    $ns attach-agent [node $to] $receiver
    $ns connect $sender $receiver
    set application [new Application/FTP]
    $application attach-agent $sender
    $ns at [expr {$start / 1e9}] "$application start"
}

proc monitor {from to} {
    global ns
    return [$ns monitor-queue [node $from] [node $to] ""]
}

proc departures {monitors} {
    set sum 0
    foreach monitor $monitors {
        set sum [expr {$sum + [$monitor set pdepartures_]}]
    }
    return [format %.0f $sum]
}

set lines [split [read [open $file]] "\n"]
set bottlenecks {}
set others {}
foreach line $lines {
    switch -- [lindex $line 0] {
        link { add_link {*}[lrange $line 1 end] }
        flow { add_flow {*}[lrange $line 1 end] }
        bottleneck { lappend bottlenecks [lrange $line 1 2] }
    }
}
if {$count eq "count"} {
    foreach line $lines {
        if {[lindex $line 0] ne "link"} continue
        lassign $line _ from to
        if {[list $from $to] in $bottlenecks} {
            lappend counted [monitor $from $to]
        } else {
            lappend others [monitor $from $to]
        }
        lappend others [monitor $to $from]
    }
}

proc finish {} {
    global counted others
    if {[info exists counted]} {
        set packets [departures $counted]
        puts "packets $packets"
        puts "hops [expr {$packets + [departures $others]}]"
    }
    exit 0
}
$ns at $seconds finish
$ns run
