//! The frames of the file transfer, cut into pieces as the network likes. What a frame says can be said again,
//! and no name leads out of the receiver's directory.

#![no_main]

use std::path::Component;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use ropewalk_apps::files::wire::{
    Decoder, Frame, TEXT_LIMIT, WireError, WireItem, encode, greeting,
};
use ropewalk_fuzz::Input;

/// All pieces of the input, data that follow each other joined; and how it ended.
fn pieces(input: &[u8], size: usize) -> (Vec<WireItem>, Option<WireError>) {
    let mut decoder = Decoder::default();
    let mut all: Vec<WireItem> = Vec::new();
    for part in input.chunks(size) {
        let mut part = Bytes::copy_from_slice(part);
        loop {
            match decoder.next(&mut part) {
                Ok(Some(WireItem::Data(more))) => match all.last_mut() {
                    Some(WireItem::Data(so_far)) => *so_far = [&so_far[..], &more].concat().into(),
                    _ => all.push(WireItem::Data(more)),
                },
                Ok(Some(piece)) => all.push(piece),
                Ok(None) => break,
                Err(error) => return (all, Some(error)),
            }
        }
        assert!(part.is_empty(), "what is not complete is kept");
    }
    (all, None)
}

fn said_again(frame: &Frame) -> Frame {
    let mut bytes = greeting().to_vec();
    encode(frame, &mut bytes);
    match pieces(&bytes, bytes.len()) {
        (pieces, None) => match &pieces[..] {
            [WireItem::Greeting, WireItem::Frame(again)] => again.clone(),
            _ => panic!("{frame:?} became {pieces:?}"),
        },
        (_, Some(error)) => panic!("{frame:?} became {error}"),
    }
}

/// Text in it may be longer than what is sent of one, where it was no UTF-8.
fn is_cut(frame: &Frame) -> bool {
    match frame {
        Frame::Skip(_, text)
        | Frame::Failed(_, text)
        | Frame::Refused(text)
        | Frame::Error(text) => text.unescaped().len() > TEXT_LIMIT,
        _ => false,
    }
}

fuzz_target!(|input: &[u8]| {
    let mut input = Input(input);
    let size = 1 + usize::from(input.byte());
    let greets = input.byte() & 1 == 0;
    // A fuzzer need not find the greeting each time.
    let begun = if greets { greeting().to_vec() } else { Vec::new() };
    let all = [&begun, input.0].concat();
    let (found, end) = pieces(&all, size);
    assert_eq!(pieces(&all, all.len().max(1)), (found.clone(), end));
    for piece in &found {
        let WireItem::Frame(frame) = piece else { continue };
        let again = said_again(frame);
        assert!(is_cut(frame) || again == *frame, "{frame:?} became {again:?}");
        assert_eq!(said_again(&again), again);
        if let Frame::Entries(entries) = frame {
            for entry in entries {
                let path = entry.name.path();
                let inside = |part: Component<'_>| matches!(part, Component::Normal(_));
                assert!(path.components().all(inside) && path.components().count() > 0);
                assert!(!entry.name.to_string().chars().any(char::is_control));
            }
        }
    }
});
