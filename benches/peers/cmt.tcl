# CMT-SCTP over two disjoint paths in ns-2, for its CPU time and the packets it delivers.
#
#   ns cmt.tcl rate1 1e8 rtt1 20 rate2 1e8 rtt2 100 mtu 1500 buffer 2666 duration 60
#
# Rates in bit/s, RTTs in ms (propagation, half each way), mtu in bytes, buffer and queue in packets,
# duration in s. Prints one line: `delivered N`.

array set opt {
  rate1 1.6e6 rtt1 20  rate2 4e5 rtt2 200
  mtu 1000 buffer 100 queue 10000 duration 600 ssthresh 0 streams 1
}
array set opt $argv

# 20 B of IP, 12 B of SCTP; data chunk with its header.
set chunk [expr {$opt(mtu) - 32}]
set window [expr {int($opt(buffer)) * $chunk}]
if {$opt(ssthresh) == 0} { set opt(ssthresh) $window }

set sim [new Simulator]
ns-random 12345
set home [$sim node]
set away [$sim node]
foreach path {1 2} {
  set near($path) [$sim node]
  set far($path) [$sim node]
  $sim multihome-add-interface $home $near($path)
  $sim multihome-add-interface $away $far($path)
}
foreach path {1 2} {
  set delay [expr {$opt(rtt$path) / 2000.0}]
  $sim duplex-link $near($path) $far($path) $opt(rate$path) $delay DropTail
  $sim queue-limit $near($path) $far($path) $opt(queue)
  $sim queue-limit $far($path) $near($path) 100000
}

set sender [new Agent/SCTP/CMT]
set receiver [new Agent/SCTP/CMT]
$sim multihome-attach-agent $home $sender
$sim multihome-attach-agent $away $receiver
foreach {end} [list $sender $receiver] {
  foreach {name value} [list \
    mtu_ $opt(mtu)  dataChunkSize_ $chunk  initialRwnd_ $window  initialSwnd_ 0 \
    initialSsthresh_ $opt(ssthresh)  numOutStreams_ $opt(streams) \
    useCmtReordering_ 1  useCmtCwnd_ 1  useCmtDelAck_ 1  eCmtRtxPolicy_ 4  useCmtPF_ 0 \
    useDelayedSacks_ 1  useMaxBurst_ 1  useNonRenegSacks_ 0] {
    $end set $name $value
  }
}
$sim connect $sender $receiver
$sender set-primary-destination $far(1)
set source [new Application/FTP]
$source attach-agent $sender

# The last tenth of the run says in its SACKs how far the receiver has come; tracing it alone costs
# next to nothing. The first TSN is 1, so the cumulative TSN counts what was delivered in order.
set log [file join [expr {[info exists env(TMPDIR)] ? $env(TMPDIR) : "/tmp"}] cmt-[pid].trace]
proc watch_sacks {} {
  global sim far near log trace_file
  Trace set show_sctphdr_ 1
  set trace_file [open $log w]
  foreach path {1 2} {
    set head [[$sim link $far($path) $near($path)] set head_]
    set trace [$sim create-trace Enque $trace_file $far($path) $near($path)]
    $trace target [$head target]
    $head target $trace
  }
}
proc finish {} {
  global sim log trace_file
  $sim flush-trace
  close $trace_file
  set trace_file [open $log]
  set delivered 0
  while {[gets $trace_file line] >= 0} {
    # From the seventh on: flags, flow, source, destination, 1, cumulative TSN, packet number, ...
    if {[string index [lindex $line 6] end] eq "S" && [lindex $line 11] > $delivered} {
      set delivered [lindex $line 11]
    }
  }
  close $trace_file
  file delete $log
  puts "delivered $delivered"
  exit 0
}
$sim at 0.0 "$source start"
$sim at [expr {$opt(duration) - 0.5}] watch_sacks
$sim at $opt(duration) finish
$sim run
