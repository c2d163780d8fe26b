//! A scenario file is understood or refused with messages that point into it; what was understood, written
//! down and read again is the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ropewalk_scenario::Scenario;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = str::from_utf8(input) else { return };
    match Scenario::parse(text, "scenario.toml") {
        Ok(scenario) => {
            let written = scenario.to_toml();
            match Scenario::parse(&written, "scenario.toml") {
                Ok(again) => assert_eq!(again.to_toml(), written),
                Err(error) => panic!("{error}\nin\n{written}"),
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
