//! Failures: truncated data does not look complete, and everything recoverable is recovered.

use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ropewalk_apps::proxy::Notice;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use super::testbed::{anywhere, echo_server, in_memory, near, short_timeouts, socks_connect};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_breaks_off_is_seen_as_broken_off_and_not_as_ended() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let ports = near(in_memory(anywhere()), None, server, short_timeouts()).await;
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.write_all(b"half of").await.unwrap();
        let _ = socket.read(&mut [0; 1]).await;
        socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO)).unwrap();
    });
    let mut socket = TcpStream::connect(ports.forward).await.unwrap();
    let mut half = [0; 7];
    socket.read_exact(&mut half).await.unwrap();
    socket.write_all(b"?").await.unwrap();
    let end = timeout(Duration::from_secs(5), socket.read(&mut half)).await.unwrap();
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_exit_resets_what_was_open_and_is_found_again_for_what_comes() {
    let server = echo_server().await;
    let exit = in_memory(anywhere());
    let ports = near(exit.clone(), None, server, short_timeouts()).await;
    let (mut open, code) = socks_connect(ports.socks, server.port()).await;
    assert_eq!(code, 0);
    *exit.up.lock().unwrap() = false;
    exit.kill();
    let end = timeout(Duration::from_secs(5), open.read(&mut [0; 9])).await.unwrap();
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
    // The wait is limited.
    let (_, code) = timeout(Duration::from_secs(5), socks_connect(ports.socks, server.port()))
        .await
        .expect("an answer, although there is no exit");
    assert_eq!(code, 3, "network unreachable");
    // A client that connects shortly before the exit is back waits for it.
    let late = tokio::spawn(socks_connect(ports.socks, server.port()));
    sleep(Duration::from_millis(100)).await;
    *exit.up.lock().unwrap() = true;
    let (mut socket, code) = late.await.unwrap();
    assert_eq!(code, 0);
    socket.write_all(b"again").await.unwrap();
    let mut again = [0; 5];
    socket.read_exact(&mut again).await.unwrap();
    assert_eq!(&again, b"again");
    let notices = ports.notices.lock().unwrap();
    let count = |kind: fn(&Notice) -> bool| notices.iter().filter(|notice| kind(notice)).count();
    assert_eq!(count(|n| matches!(n, Notice::Connected(_))), 2, "{notices:?}");
    assert_eq!(count(|n| matches!(n, Notice::Lost(_))), 1, "{notices:?}");
    assert!(count(|n| matches!(n, Notice::NotConnected(..))) >= 1, "{notices:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exit_that_forgot_us_is_given_up_but_not_one_that_is_only_silent_for_a_while() {
    let server = echo_server().await;
    let exit = in_memory(anywhere());
    let ports = near(exit.clone(), None, server, short_timeouts()).await;
    let (mut open, code) = socks_connect(ports.socks, server.port()).await;
    assert_eq!(code, 0);
    // All paths are down for a while: no target can be reached, and the connection stays.
    *exit.up.lock().unwrap() = false;
    exit.set_silent(true);
    sleep(Duration::from_millis(700)).await;
    // The exit answers again, both on the first connection and on a second one.
    *exit.up.lock().unwrap() = true;
    exit.set_silent(false);
    sleep(Duration::from_millis(700)).await;
    open.write_all(b"still").await.unwrap();
    let mut still = [0; 5];
    timeout(Duration::from_secs(5), open.read_exact(&mut still)).await.unwrap().unwrap();
    assert_eq!(&still, b"still");
    // The exit accepts a second connection, but does not answer on the first one.
    exit.set_silent(true);
    let end = timeout(Duration::from_secs(5), open.read(&mut still)).await.expect("given up");
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
    exit.set_silent(false);
    assert_eq!(socks_connect(ports.socks, server.port()).await.1, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exit_is_asked_while_programs_wait_and_one_that_has_stopped_is_given_up() {
    let server = echo_server().await;
    let exit = in_memory(anywhere());
    let ports = near(exit.clone(), None, server, short_timeouts()).await;
    let asked = async || {
        let before = exit.asked.load(Ordering::Relaxed);
        sleep(Duration::from_millis(400)).await;
        exit.asked.load(Ordering::Relaxed) - before
    };
    assert_eq!(asked().await, 0, "no program waits");
    let (mut open, code) = socks_connect(ports.socks, server.port()).await;
    assert_eq!(code, 0);
    assert!(asked().await > 0);
    // The exit cannot be reached, so a second connection proves nothing.
    *exit.up.lock().unwrap() = false;
    exit.set_silent(true);
    sleep(Duration::from_millis(100)).await;
    assert_eq!(asked().await, 0, "it is silent");
    exit.stopped.notify_one();
    let end = timeout(Duration::from_secs(5), open.read(&mut [0; 9])).await.expect("given up");
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_goes_away_takes_its_connection_at_the_exit_along() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let ports = near(in_memory(anywhere()), None, server, short_timeouts()).await;
    let (program, code) = socks_connect(ports.socks, server.port()).await;
    assert_eq!(code, 0);
    let (mut socket, _) = listener.accept().await.unwrap();
    socket2::SockRef::from(&program).set_linger(Some(Duration::ZERO)).unwrap();
    drop(program);
    let end = timeout(Duration::from_secs(5), socket.read(&mut [0; 9])).await.unwrap();
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
}
