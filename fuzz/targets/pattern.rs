#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kslate_fuzz::pattern(data));
