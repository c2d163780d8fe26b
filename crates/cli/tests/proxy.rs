//! `ropewalk proxy` as people start it: what it refuses, and a page of thirty objects through it in a
//! real browser over emulated links.

mod support;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use support::Room;

/// A key that nobody has.
const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE=";

#[test]
fn what_would_open_the_proxy_to_others_or_to_nobody_is_refused_with_a_hint() {
    let room = Room::new("proxy-refusals");
    fs::write(room.file("wrong"), "no colon\n").expect("a file");
    for (words, said) in [
        (&["proxy", "--to", "192.0.2.7", "--peer", KEY][..], "--socks 1080"),
        (&["proxy", "--to", "192.0.2.7", "--socks", "1080"], "--peer is missing"),
        (
            &["proxy", "--to", "192.0.2.7", "--peer", KEY, "--socks", "0.0.0.0:1080"],
            "--credentials",
        ),
        (&["proxy", "--to", "192.0.2.7", "--peer", KEY, "--forward", "[::]:80=a:80"], "--open"),
        (&["proxy", "--to", "192.0.2.7", "--peer", KEY, "--forward", "80=a"], "HOST:PORT"),
        (
            &[
                "proxy",
                "--to",
                "192.0.2.7",
                "--peer",
                KEY,
                "--socks",
                "1",
                "--credentials",
                "wrong",
            ],
            "NAME:PASSWORD",
        ),
        (&["proxy", "exit"], "--allow"),
        (&["proxy", "exit", "--allow", KEY, "--allow-to", "10.0.0.0/99"], "10.0.0.0/8"),
    ] {
        let done = room.ropewalk(words);
        let (status, text) = (done.status(), done.stderr());
        assert_eq!(status, 2, "{words:?}: {text}");
        assert!(text.contains(said), "{words:?}: {text}");
    }
}

/// Objects of the page.
const OBJECTS: u32 = 30;

/// A page whose title tells, once all is there, after how many milliseconds, and how many objects came.
fn write_page(at: &Path) {
    fs::create_dir_all(at).expect("a directory");
    let mut page = "<!doctype html><title>page</title><body>".to_owned();
    for i in 0..OBJECTS {
        // 4 to 60 kB, as on pages of today: many are small.
        let bytes = [4_000, 10_000, 20_000, 30_000, 40_000, 60_000][i as usize * 7 % 6];
        let mut text = String::new();
        let mut state = u64::from(i) + 1;
        while text.len() < bytes {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            write!(text, "{state:016x}").expect("a string");
        }
        let image = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\"><!--{text}--></svg>"
        );
        fs::write(at.join(format!("{i}.svg")), image).expect("an object");
        write!(page, "<img src=\"{i}.svg\">").expect("a string");
    }
    page += "<script>addEventListener('load', () => setTimeout(() => {
        const after = performance.getEntriesByType('navigation')[0].loadEventStart;
        const there = [...document.images].filter(i => i.complete && i.naturalWidth > 0).length;
        document.body.innerHTML = `<p>LOADED ${Math.round(after)} ${there}</p>`;
    }, 0))</script>";
    fs::write(at.join("index.html"), page).expect("the page");
}

/// Loads the page `$ROUNDS` times over both paths, and over each alone.
const LOADS: &str = r#"
once() {
  ropewalk proxy -q --to "$2" --from "$3" --key near.key --peer "$EXIT" --socks "$4" &
  near=$!
  sleep 1.5
  seen=$(timeout 90 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
    --disable-background-networking --disable-component-update --user-data-dir="$PWD/profile-$4" \
    --proxy-server=socks5://127.0.0.1:$4 --proxy-bypass-list='<-loopback>' --timeout=60000 \
    --dump-dom http://localhost:8000/ 2>browser.log | grep -o 'LOADED [0-9]* [0-9]*')
  echo "$1 $seen"
  kill $near; wait $near
}
port=1080
for round in $(seq "$ROUNDS"); do
  port=$((port + 3))
  once both "$ROPEWALK_REMOTE_1,$ROPEWALK_REMOTE_2" "$ROPEWALK_LOCAL_1,$ROPEWALK_LOCAL_2" $port
  once path-1 "$ROPEWALK_REMOTE_1" "$ROPEWALK_LOCAL_1" $((port + 1))
  once path-2 "$ROPEWALK_REMOTE_2" "$ROPEWALK_LOCAL_2" $((port + 2))
done
"#;

/// Whether the word can be run.
fn is_there(word: &str) -> bool {
    Command::new(word).arg("--version").output().is_ok_and(|done| done.status.success())
}

/// The times of one way in milliseconds, sorted; all objects have to be there.
fn times(output: &str, way: &str) -> Vec<u64> {
    let lines = output.lines().filter_map(|line| line.strip_prefix(way));
    let mut times: Vec<u64> = lines
        .map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            let [_, after, there] = words[..] else {
                panic!("{way}: the page did not load: {output}")
            };
            assert_eq!(there, OBJECTS.to_string(), "{way}: not all objects came: {output}");
            after.parse().expect("milliseconds")
        })
        .collect();
    times.sort_unstable();
    times
}

#[test]
fn a_page_of_thirty_objects_loads_in_a_browser_over_wifi_and_lte() {
    let root = Command::new("id").arg("-u").output().is_ok_and(|done| done.stdout == b"0\n");
    let missing: Vec<_> =
        ["chromium", "python3", "bash"].into_iter().filter(|word| !is_there(word)).collect();
    if !root || !missing.is_empty() {
        println!("skipped: needs root (for namespaces: {root}), and not there is: {missing:?}");
        return;
    }
    let room = Room::new("proxy-page");
    write_page(&room.file("www"));
    fs::write(room.file("loads.sh"), LOADS).expect("a script");
    let (exit, near) = (room.key("exit.key"), room.key("near.key"));
    let binary = Path::new(env!("CARGO_BIN_EXE_ropewalk"));
    let others = std::env::var("PATH").expect("a path");
    let path = format!("{}:{others}", binary.parent().expect("a directory").display());
    let rounds = std::env::var("ROUNDS").unwrap_or_else(|_| "1".to_owned());
    let done = Command::new(binary)
        .args(["emulate", "scenarios/wifi-lte.toml", "-q"])
        .args([
            "--far",
            &format!("ropewalk proxy exit -q --key exit.key --allow {near} --allow-private"),
        ])
        .args(["--far", "cd www && exec python3 -m http.server --bind 127.0.0.1 8000 2>/dev/null"])
        .args(["--", "bash", "loads.sh"])
        .current_dir(room.file(""))
        .env("PATH", path)
        .env("EXIT", exit)
        .env("ROUNDS", &rounds)
        .output()
        .expect("the command");
    let output = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{output}{}", String::from_utf8_lossy(&done.stderr));
    for way in ["both", "path-1", "path-2"] {
        let times = times(&output, way);
        assert_eq!(times.len().to_string(), rounds, "{output}");
        println!("{way}: median {} ms of {times:?}", times[times.len() / 2]);
    }
}
