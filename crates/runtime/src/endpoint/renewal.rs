//! Datagrams that renew the keys of a session. They are not packets of the association, and are sent to the source of
//! a received datagram.

use ropewalk_base::Time;

use super::encapsulation::Encapsulation;
use super::inbound::Opened;
use super::peer::Route;
use super::state::EndpointState;
use crate::seal::{RenewalMessage, Session};

impl EndpointState {
    /// Offers the peer a renewal of the session's keys.
    #[cold]
    pub(super) fn offer_renewal(&mut self, now: Time, one: &Opened, route: Route) {
        self.send_of_session(one, route, |session| session.offer(now));
    }

    /// Handles a datagram that renews the keys of a session.
    pub(super) fn on_renewal(&mut self, now: Time, one: &Opened, route: Route, content: &[u8]) {
        self.send_of_session(one, route, |session| session.handle_renewal(now, content));
    }

    /// Sends the pending datagrams of a session to the source of a received datagram.
    fn send_of_session(
        &mut self,
        one: &Opened,
        route: Route,
        content: impl FnOnce(&mut Session) -> Option<RenewalMessage>,
    ) {
        let Some(mut peer) = self.take_out(one.key) else { return };
        if let Encapsulation::Sealed(session) = &mut peer.encapsulation
            && let Some(content) = content(session)
        {
            self.send_beside(&mut peer, one.path, route, |out| out.extend(content));
        }
        self.put_back(one.key, peer);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Endpoint, Options, Target};
    use super::*;
    use crate::seal::{Allowed, Limits, SecretKey};

    /// Makes all sessions of an endpoint renew their keys every twenty datagrams. Returns their epochs.
    fn hurry(endpoint: &Endpoint) -> Vec<u64> {
        let limits = Limits {
            rekey_packets: 20,
            rekey_pause: ropewalk_base::Duration::ZERO,
            ..Limits::default()
        };
        let mut epochs = Vec::new();
        for shard in &endpoint.shards {
            let mut state = shard.lock();
            for key in state.keys() {
                let peer = state.peer(key).expect("it is there");
                if let Encapsulation::Sealed(session) = &mut peer.encapsulation {
                    session.set_limits(limits);
                    epochs.push(session.epoch());
                }
            }
        }
        epochs
    }

    #[tokio::test]
    async fn keys_are_renewed_while_data_flows_and_none_is_lost() {
        let [ours, theirs] = [(); 2].map(|()| SecretKey::generate().expect("random numbers"));
        let local = ([127, 0, 0, 1], 0).into();
        let allowed = Allowed::Keys([ours.public()].into());
        let server = Options::listening(&[local]).sealed(theirs.clone(), allowed);
        let server = Endpoint::open(server).expect("a free port");
        let client =
            Options::connecting(&[local]).sealed(ours, Allowed::Keys([theirs.public()].into()));
        let client = Endpoint::open(client).expect("a free port");
        let target = Target { addresses: server.locals().to_vec(), key: Some(theirs.public()) };
        let near = client.connect(&target).await.expect("the server listens");
        let far = server.accept().await;
        assert_eq!((hurry(&client), hurry(&server)), (vec![0], vec![0]));
        for number in 0..300 {
            near.send(0, number, vec![7; 2000].into()).await.expect("it is up");
            assert_eq!(far.receive().await.map(|message| message.ppid), Some(number));
            far.send(0, number, vec![7; 2000].into()).await.expect("it is up");
            assert_eq!(near.receive().await.map(|message| message.ppid), Some(number));
        }
        let (initiator, responder) = (hurry(&client)[0], hurry(&server)[0]);
        assert!(initiator >= 5 && initiator - responder <= 1, "{initiator} and {responder}");
    }
}
