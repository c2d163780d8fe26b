//! Compares the format with test vectors that were made from docs/reference/sealing.md with Python's `hmac` and
//! `cryptography`.

use crate::seal::cipher::Cipher;
use crate::seal::keys::PublicKey;
use crate::seal::mac::MacKey;
use crate::seal::ratchet::Ratchet;
use crate::seal::sender::Sender;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_datagram_of_the_second_epoch_is_that_of_another_implementation() {
    for (cipher, expected) in [
        (Cipher::Aes128Gcm, "b503deadbeef0000051edde271cfaacdab33f87e0cd8b4d18b099b509871"),
        (Cipher::ChaCha20Poly1305, "b503deadbeef000005a39db316500370f6cc29bbabcde74c996430dedda6"),
    ] {
        let mut sender = Sender::new(0xdead_beef, Ratchet::new(cipher, &[1; 32], &[9; 32]));
        sender.turn();
        sender.set_counter(3, (1 << 32) + 5);
        let mut out = Vec::new();
        sender.seal(3, 13, &mut out, |out| out.extend(b"hello")).expect("sealed");
        assert_eq!(hex(&out), expected, "{cipher}");
    }
}

#[test]
fn the_macs_are_those_of_another_implementation() {
    let public = core::array::from_fn(|index| index as u8 + 1);
    let key = MacKey::of(&PublicKey::from_bytes(public).expect("a key"));
    let mut first = b"first datagram".to_vec();
    let mac = key.sign_first(&mut first);
    assert_eq!(hex(&first[14..]), "b96d1109cec01c4665c81f505c41f2e2");
    let mut answer = b"answer".to_vec();
    key.sign_answer(&mac, &mut answer);
    assert_eq!(hex(&answer[6..]), "316c75e56272dbb29c8ec87ea399cf8b");
}
