//! Attacks on the boundary of the network, on both classes, against an internet of our own that writes down every packet it gets.
//!
//! Each blocked attack is also run where nothing forbids it, so that blocked means something; and each time the log of the internet must be empty.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "egress/astray.rs"]
mod astray;
#[path = "egress/attacks.rs"]
mod attacks;
#[path = "egress/frames.rs"]
mod frames;
#[path = "egress/fronting.rs"]
mod fronting;
#[path = "egress/internet.rs"]
mod internet;
#[path = "egress/life.rs"]
mod life;
#[path = "egress/neighbours.rs"]
mod neighbours;
#[path = "egress/prelude.rs"]
mod prelude;
#[path = "egress/proxies.rs"]
mod proxies;
#[path = "egress/reading.rs"]
mod reading;
#[path = "egress/registries.rs"]
mod registries;
#[path = "egress/scene.rs"]
mod scene;
#[path = "egress/unguarded.rs"]
mod unguarded;

/// Makes one test per class of each function.
macro_rules! on_every_class {
    ($($theme:ident :: { $($name:ident),+ $(,)? }),+ $(,)?) => {
        mod container { $($( #[test] fn $name() { belljar_testkit::block_on(super::$theme::$name(belljar_types::IsolationClass::Container)); } )+)+ }
        mod gvisor { $($( #[test] fn $name() { belljar_testkit::block_on(super::$theme::$name(belljar_types::IsolationClass::Gvisor)); } )+)+ }
    };
}

on_every_class! {
    attacks::{
        what_is_allowed_works, addresses_that_are_not_allowed_are_refused, private_addresses_stay_closed_whatever_the_rules_say,
        spellings_of_addresses_lead_nowhere, a_name_that_leads_to_a_private_address_is_not_dialled, a_name_put_into_hosts_is_an_address,
        questions_for_names_stay_on_the_host, names_below_a_wildcard_are_counted, only_tcp_gets_out, tls_must_ask_for_the_name_it_is_for,
        a_hello_is_read_whole, names_that_look_alike_lead_elsewhere,
    },
    proxies::{
        proxies_are_held_to_the_same, plain_requests_are_read_strictly,
    },
    reading::{
        requests_inside_tls_are_judged_one_by_one, a_secret_goes_where_it_belongs_and_nowhere_else, the_authority_signs_for_its_own_hosts_only,
    },
    life::{
        a_tighter_policy_cuts_a_download, a_tighter_policy_cuts_a_websocket, whoever_is_not_attached_gets_nothing, a_limit_of_bytes_is_kept, a_slot_that_is_used_again_has_nothing_of_before,
        many_connections_meet_the_limit, whoever_floods_the_proxy_harms_nobody_else,
    },
    frames::{
        frames_of_ones_own_get_no_further,
    },
    neighbours::{
        neighbours_and_the_gateway_are_out_of_reach,
    },
    fronting::{
        the_second_http_fronts_nobody,
    },
    astray::{
        a_secret_is_not_led_astray, a_bomb_goes_by_unopened,
    },
}
