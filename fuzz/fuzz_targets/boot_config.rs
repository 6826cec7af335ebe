//! A boot configuration from any bytes; what is accepted survives being written again.
#![no_main]

use belljar_guest_protocol::BootConfig;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(config) = BootConfig::decode(bytes) {
        assert_eq!(BootConfig::decode(&config.encode()).expect("what was written is read"), config);
    }
});
