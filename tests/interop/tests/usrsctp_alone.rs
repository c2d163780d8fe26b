//! usrsctp against itself: checks the assumptions of the other tests.

use ropewalk_interop::hosts::{Hosts, Side};
use ropewalk_interop::or_skip;
use ropewalk_interop::peer::{Peer, usrsctp};

#[test]
fn two_of_them_understand_each_other() {
    let program = or_skip!(usrsctp());
    let hosts = or_skip!(Hosts::new(2));
    let server = Peer::start(
        &hosts,
        Side::Theirs,
        program,
        "--server --bind 10.77.1.2,10.77.2.2 --streams 10 --echo",
    );
    let client = Peer::start(
        &hosts,
        Side::Ours,
        program,
        "--bind 10.77.1.1,10.77.2.1 --connect 10.77.1.2,10.77.2.2 --streams 10 --bytes 1000000 \
         --message 5000 --expect 1000000 --finish shutdown --sysctl sctp_cmt_on_off=1",
    );
    for (report, sent) in [(client.report(), 1_000_000), (server.report(), 1_000_000)] {
        assert_eq!(report.ended(), "shutdown");
        assert_eq!((report.received(), report.sent()), (1_000_000, sent));
    }
}
