//! What every store must hold to (`belljar_ports::Store`), checked on SQLite and on PostgreSQL by the same functions.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod artifacts;
mod bed;
mod damage;
mod death;
mod disk;
mod full_disk;
mod life;
mod metering;
mod once;
mod paging;
mod postgres_server;
mod projects;
mod quota;
mod snapshots;
mod volumes;
mod webhooks;

/// Each function of each module, once on a fresh SQLite file and once in a fresh PostgreSQL database.
macro_rules! on_both {
    ($($module:ident: $($name:ident),+;)+) => {
        mod sqlite {
            $($(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$module::$name(&super::bed::Bed::sqlite().await).await;
            })+)+
        }
        mod postgres {
            $($(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$module::$name(&super::bed::Bed::postgres().await).await;
            })+)+
        }
    };
}

on_both! {
    life: a_life_is_read_back_as_it_was_written, a_writer_that_is_wrong_about_the_sandbox_changes_nothing, an_older_epoch_changes_nothing,
        nothing_of_an_older_epoch_arrives_after_a_new_one_began, only_what_ended_long_ago_is_forgotten, a_store_that_works_says_so,
        two_sandboxes_cannot_have_one_id, a_verb_given_up_half_way_is_done_or_not_done;
    metering: readings_are_kept_and_add_up, budgets_come_and_go;
    webhooks: what_is_told_is_told_in_order_and_once, a_state_and_its_message_are_written_together;
    quota: each_resource_is_bounded_and_named, fifty_at_once_get_exactly_what_there_is_room_for, the_end_frees_what_was_charged,
        a_new_epoch_sums_up_anew, what_a_project_has_stays_when_its_quota_shrinks;
    disk: no_order_of_things_passes_the_quota, fifty_of_all_kinds_at_once_get_exactly_what_there_is_room_for,
        what_the_server_takes_for_itself_is_not_counted;
    once: the_same_request_finds_its_sandbox, the_same_key_for_another_request_is_refused, fifty_equal_requests_make_one_sandbox,
        a_refused_request_leaves_its_key_free, a_request_that_made_nothing_may_be_sent_again;
    paging: a_thousand_of_one_moment_are_each_listed_once, filters_let_through_what_they_say, pages_agree_with_a_model;
    projects: projects_come_and_go, a_project_with_live_sandboxes_stays, projects_do_not_see_each_other, keys_are_found_by_their_hash;
    damage: one_bad_row_is_one_bad_row, a_bad_key_is_refused_and_left_out, a_newer_schema_is_refused, opening_again_keeps_everything,
        many_may_open_it_for_the_first_time;
    snapshots: a_snapshot_is_seen_when_it_is_whole_and_only_then, a_writer_that_is_wrong_about_a_snapshot_changes_nothing,
        a_name_means_the_newest_that_has_it, snapshots_expire_in_their_order, a_family_is_found_by_whom_it_began_with,
        snapshots_count_for_the_disk_and_keep_their_project, one_bad_snapshot_is_one_bad_snapshot;
    volumes: a_volume_is_seen_when_it_is_ready_and_only_then, names_are_taken_once_in_a_project_and_listed_in_order,
        a_writer_has_a_volume_alone, fifty_writers_at_once_get_one_volume, readers_and_sharers_go_together_and_a_kept_state_is_read_only,
        a_mounted_volume_stays_until_its_sandbox_has_ended, a_writer_that_is_wrong_about_a_volume_changes_nothing,
        volumes_count_for_the_disk_and_keep_their_project, one_bad_volume_is_one_bad_volume;
    artifacts: an_artifact_is_seen_when_it_is_kept_and_only_then, artifacts_are_listed_and_expire_in_their_order,
        artifacts_count_for_the_disk_and_keep_their_project;
    death: what_was_acknowledged_survives_being_killed;
}
