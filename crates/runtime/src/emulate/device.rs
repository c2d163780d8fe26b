//! The ends of the paths: a TUN device for each path on each side, its addresses and routes.

use std::fs;
use std::io::{self, Write};
use std::process::{Command, Stdio};

use tun_rs::{DeviceBuilder, Layer, SyncDevice};

use super::addresses::Address;
use super::error::EmulateError;
use super::links::Side;

/// Number of packets that may wait for the emulator. It exceeds the emulator's delay: the real
/// queues are in the links.
const DEVICE_QUEUE: u32 = 10_000;

/// Creates the devices of one side in the namespace of the calling thread.
///
/// # Errors
/// If the system does not permit it, or lacks `ip`.
pub fn make_devices(
    side: Side,
    devices: &[(String, u32)],
) -> Result<Vec<SyncDevice>, EmulateError> {
    let made = devices.iter().map(|(name, _)| make(name)).collect::<Result<Vec<_>, _>>()?;
    // Disables reverse path filtering: replies leave through the device of their source address, regardless of the
    // device on which the request arrived.
    for name in devices.iter().map(|(name, _)| name.as_str()).chain(["all", "default"]) {
        let file = format!("/proc/sys/net/ipv4/conf/{name}/rp_filter");
        fs::write(&file, "0").map_err(|e| EmulateError::system(file, e))?;
    }
    // No link-local addresses and no router solicitations: only packets of programs are sent.
    for (name, _) in devices {
        for (key, value) in [("addr_gen_mode", "1"), ("accept_ra", "0")] {
            // Fails on a system without IPv6, which is harmless.
            let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{name}/{key}"), value);
        }
    }
    ip(&["-batch", "-"], &commands(side, devices))?;
    // Errors are ignored: a system without IPv6, or a path with an MTU below 1280, uses IPv4 only.
    let _ = ip(&["-6", "-force", "-batch", "-"], &commands_v6(side, devices));
    Ok(made)
}

fn make(name: &str) -> Result<SyncDevice, EmulateError> {
    let device = DeviceBuilder::new().name(name).layer(Layer::L3).enable(false).build_sync();
    let device = device.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            EmulateError::NotPermitted { what: "create a TUN device" }
        }
        io::ErrorKind::NotFound => EmulateError::NoTun(error),
        _ if error.raw_os_error() == Some(nix::libc::ENODEV) => EmulateError::NoTun(error),
        _ => EmulateError::system(format!("cannot create the TUN device {name}"), error),
    })?;
    let ready = device.set_nonblocking(true);
    ready.map_err(|e| EmulateError::system(format!("the TUN device {name}"), e))?;
    Ok(device)
}

/// The `ip` commands for IPv4.
///
/// A packet takes the path of the *sender's* address. At the sender, a rule selects the path by source address. At
/// the receiver, the network of the destination selects it without a rule. Any pair of addresses thus uses the same
/// path in both directions, and a program that does not bind gets the path of its destination address.
fn commands(side: Side, devices: &[(String, u32)]) -> String {
    let mut text = "link set dev lo up\n".to_owned();
    for (path, (name, mtu)) in (1..).zip(devices) {
        let address = Address { path, side };
        let table = address.table();
        text += &format!(
            "link set dev {name} mtu {mtu} txqueuelen {DEVICE_QUEUE} multicast off\n\
             addr add {address}/24 dev {name}\n\
             link set dev {name} up\n"
        );
        if side == Side::Sender {
            text += &format!(
                "rule add from {address} lookup {table} priority {table}\n\
                 route add default dev {name} table {table}\n"
            );
        }
    }
    text
}

/// The `ip` commands for IPv6.
fn commands_v6(side: Side, devices: &[(String, u32)]) -> String {
    let mut text = String::new();
    for (path, (name, _)) in (1..).zip(devices) {
        let address = Address { path, side };
        let (v6, table) = (address.v6(), address.table());
        text += &format!("addr add {v6}/112 dev {name} nodad\n");
        if side == Side::Sender {
            text += &format!(
                "rule add from {v6} lookup {table} priority {table}\n\
                 route add default dev {name} table {table}\n"
            );
        }
    }
    text
}

fn ip(arguments: &[&str], input: &str) -> Result<(), EmulateError> {
    let mut command = Command::new("ip");
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => EmulateError::Missing {
            program: "ip",
            hint: "it is in the package iproute2 (or iproute)",
        },
        _ => EmulateError::system("cannot run `ip`", error),
    })?;
    let broken = |e| EmulateError::system("talking to `ip`", e);
    child.stdin.take().expect("asked for").write_all(input.as_bytes()).map_err(broken)?;
    let output = child.wait_with_output().map_err(broken)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(EmulateError::system("`ip` refused to set up a device", io::Error::other(said)))
}
