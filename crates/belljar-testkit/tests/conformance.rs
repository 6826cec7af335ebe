//! Every verb, on every class that runs here, on real engines: the suite a new engine must pass before it is one.
//!
//! Each file is a theme; each function takes the class it runs on. `BELLJAR_FULL=1` runs the sizes the project promises.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on has failed, and says what it measured")]

#[path = "conformance/files.rs"]
mod files;
#[path = "conformance/life.rs"]
mod life;
#[path = "conformance/limits.rs"]
mod limits;
#[path = "conformance/memory.rs"]
mod memory;
#[path = "conformance/output.rs"]
mod output;
#[path = "conformance/processes.rs"]
mod processes;
#[path = "conformance/refusals.rs"]
mod refusals;
#[path = "conformance/state.rs"]
mod state;
#[path = "conformance/terminal.rs"]
mod terminal;
#[path = "conformance/work.rs"]
mod work;

/// Makes one test per class of each function.
macro_rules! on_every_class {
    ($($theme:ident :: { $($name:ident),+ $(,)? }),+ $(,)?) => {
        mod container { $($( #[test] fn $name() { belljar_testkit::block_on(super::$theme::$name(belljar_types::IsolationClass::Container)); } )+)+ }
        mod gvisor { $($( #[test] fn $name() { belljar_testkit::block_on(super::$theme::$name(belljar_types::IsolationClass::Gvisor)); } )+)+ }
    };
}

on_every_class! {
    processes::{
        exit_codes_and_signals_are_told_apart, environment_directory_and_user_are_as_asked, binary_input_comes_back_unchanged,
        input_written_twice_at_an_offset_is_taken_once, a_process_is_started_once_however_often_it_is_asked_for, signals_reach_the_whole_group,
        a_deadline_ends_everything_the_process_started, zombies_are_reaped, sudo_makes_root_and_only_where_allowed,
        processes_are_listed_with_their_tags, a_login_shell_starts_no_process_of_its_own,
    },
    output::{
        a_hundred_megabytes_arrive_whole, streams_stay_apart, a_reader_comes_back_at_its_offset, two_readers_see_the_same_bytes,
        a_late_reader_is_told_exactly_what_fell_out, a_slowed_writer_loses_nothing, a_runaway_writer_is_killed_when_so_chosen,
    },
    terminal::{resizing_is_seen_inside, a_shell_has_job_control, ctrl_c_interrupts},
    files::{
        a_big_file_goes_up_and_down_in_constant_memory, ranges_and_offsets, odd_names_survive, what_is_listed_is_what_is_there,
        moves_and_removals, modes_owners_and_attributes, attributes_belong_to_files_and_obey_their_permissions,
        users_cannot_do_more_than_they_may, users_are_known_as_soon_as_they_are_made, a_claimed_file_belongs_to_whoever_may_have_it,
        watching_sees_changes_below,
        searching_finds_names_and_content,
    },
    limits::{
        memory_beyond_the_limit_is_an_out_of_memory_kill, a_fork_bomb_meets_the_pids_limit, a_writer_meets_the_disk_limit, the_cpu_quota_is_kept,
    },
    life::{
        destroying_leaves_nothing, a_sandbox_outlives_its_maker, pausing_stops_and_resuming_goes_on, usage_is_counted,
        ports_are_listed_and_reached, metrics_make_sense, what_it_cannot_do_it_says_before, a_sandbox_that_ends_says_why,
    },
    state::{
        forks_have_the_files_and_go_their_own_way, a_snapshot_in_the_middle_of_writing_is_consistent, a_fork_of_many_files_copies_none,
        a_fork_meets_its_own_disk_limit, rolling_back_brings_the_files_back, a_pause_without_memory_keeps_the_files,
        snapshots_are_listed_and_leave_nothing,
    },
    memory::{
        everything_goes_on_after_a_pause_and_a_restart, forks_of_a_warm_interpreter_share_nothing_but_the_past,
        memory_and_files_are_of_one_moment, rolling_back_brings_memory_back, what_cannot_be_written_down_is_said_and_runs_on,
    },
    refusals::{bad_requests_name_what_is_wrong_and_change_nothing, bad_specs_leave_nothing, an_id_in_use_is_refused},
    work::{compilers_and_interpreters_work, packages_install_from_registries, a_web_server_serves, a_closed_sandbox_reaches_nothing},
}
