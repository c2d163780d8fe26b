//! The tests against other stacks in one program, because each program links Ropewalk and its
//! peers.

mod addresses;
mod crafted;
mod dcsctp;
mod following;
mod over_ip;
mod over_ip_ports;
mod pion;
mod refusals;
mod translated;
mod usrsctp;
mod usrsctp_addresses;
mod usrsctp_alone;
mod usrsctp_authentication;
mod usrsctp_interleaving;
mod usrsctp_nr_sack;
mod usrsctp_resets;
mod usrsctp_seen;
mod usrsctp_trouble;
