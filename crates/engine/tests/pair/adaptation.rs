//! Adaptation layer indications in the handshake (RFC 5061, 4.2.6).

use ropewalk_base::{PathId, Seed, Time};
use ropewalk_engine::sctp::{Answer, Association, Chunk, ChunkTypes, Config, Listener, Packet};

use crate::driver::{LEFT, Pair, RIGHT, config, in_turn};

fn saying(adaptation: Option<u32>, authentication: bool) -> Config {
    let authenticated_chunks = ChunkTypes::of(&[0]);
    Config { adaptation, authentication, authenticated_chunks, ..config(2, 1 << 16) }
}

#[test]
fn each_end_knows_what_the_other_one_says_in_its_init_or_init_ack() {
    for (left, right) in [(None, None), (Some(7), None), (None, Some(0)), (Some(1), Some(u32::MAX))]
    {
        for authentication in [false, true] {
            let ends = [saying(left, authentication), saying(right, authentication)];
            let mut pair = Pair::with(&ends[0], &ends[1], &[10, 20], [in_turn(), in_turn()]);
            pair.connect();
            assert_eq!(pair.ends[LEFT].peer_adaptation(), right);
            assert_eq!(pair.ends[RIGHT].peer_adaptation(), left);
        }
    }
}

#[test]
fn a_listener_keeps_it_in_the_cookie() {
    for authentication in [false, true] {
        let [client, server] = [5, 6].map(|layer| saying(Some(layer), authentication));
        let seed = Seed::root(9);
        let mut near = Association::connect(client, in_turn(), seed.child("near"), Time::ZERO);
        let mut listener = Listener::new(server.clone(), seed.child("listener"));
        let next = |end: &mut Association| -> Packet {
            end.poll_transmit(Time::ZERO).expect("a packet").packet
        };
        let mut init = next(&mut near);
        let Answer::Reply(answer) = listener.handle(Time::ZERO, b"here", &mut init) else {
            panic!("no answer")
        };
        assert!(matches!(answer.chunks.first(), Some(Chunk::InitAck(_))));
        near.handle_datagram(Time::ZERO, PathId(0), answer);
        assert_eq!(near.peer_adaptation(), Some(6));
        let mut cookie = next(&mut near);
        let Answer::Accept(accepted) = listener.handle(Time::ZERO, b"here", &mut cookie) else {
            panic!("not accepted")
        };
        let far = Association::accepted(
            server,
            in_turn(),
            seed.child("far"),
            Time::ZERO,
            PathId(0),
            *accepted,
        );
        assert_eq!(far.peer_adaptation(), Some(5));
    }
}
