use super::*;

#[test]
fn packets_leave_the_tunnel_for_the_open_internet_unless_more_is_permitted() {
    let network = "10.88.0.0/16".parse().expect("a network");
    let mut settings = HubSettings {
        name: "tunnel".to_owned(),
        device: "rw-tunnel".to_owned(),
        pool: Pool::new(&[network]).expect("a pool"),
        nat: true,
        allow_private: false,
        client_to_client: false,
        dns: vec![[192, 168, 1, 1].into()],
        lane: LaneSettings::default(),
        lease_file: PathBuf::new(),
        volume_file: PathBuf::new(),
        endpoint: Vec::new(),
        journal_directory: PathBuf::new(),
    };
    let headers = |to: &str, port| Headers {
        source: [10, 88, 0, 2].into(),
        destination: to.parse().expect("an address"),
        protocol: 17,
        ports: (4000, port),
        dscp: 0,
        ecn: 0,
        may_fragment: true,
        transport: Transport::Udp { first: None },
    };
    for (to, port, expected) in [
        ("9.9.9.9", 53, true),
        ("2620:fe::fe", 443, true),
        ("10.88.0.1", 22, true),
        ("10.50.0.2", 80, false),
        ("240.0.0.1", 80, false),
        ("fec0::1", 80, false),
        ("::ffff:10.50.0.2", 80, false),
        ("64:ff9b::10.50.0.2", 80, false),
        ("2002:a32:2::1", 80, false),
        ("192.168.1.1", 53, true),
        ("192.168.1.1", 80, false),
        ("192.168.1.2", 53, false),
    ] {
        settings.allow_private = false;
        assert_eq!(settings.lets_out(&headers(to, port)), expected, "{to} {port}");
        settings.allow_private = true;
        assert!(settings.lets_out(&headers(to, port)), "{to} {port} with --allow-private");
    }
}
