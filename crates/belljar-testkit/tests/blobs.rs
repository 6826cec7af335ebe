//! What every place for blobs must hold to (`belljar_ports::Blobs`), checked on a directory and on a service that speaks S3 by the same
//! functions; then what is particular to each.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "blobs/half.rs"]
mod half;
#[path = "blobs/scene.rs"]
mod scene;
#[path = "blobs/suite.rs"]
mod suite;

/// One test a check and a place.
macro_rules! on_both {
    ($($check:ident),* $(,)?) => {
        mod in_a_directory {
            $(#[tokio::test]
            async fn $check() {
                crate::suite::$check(&crate::scene::Scene::directory()).await;
            })*
        }
        mod in_s3 {
            $(#[tokio::test]
            async fn $check() {
                crate::suite::$check(&crate::scene::Scene::s3().await).await;
            })*
        }
    };
}

on_both! {
    what_was_put_is_read_whole_and_in_part,
    what_needs_many_parts_comes_back_the_same,
    what_is_too_large_or_cut_short_leaves_nothing,
    what_was_damaged_is_never_given_as_whole,
    what_is_removed_is_gone_and_lists_are_by_words,
    what_is_held_does_not_grow_with_the_blob,
}
