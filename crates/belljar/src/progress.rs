//! Signs of life for what takes over a second; on standard error, and only where somebody looks.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Nobody wonders before that.
const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);

/// Shows `text` and how long it has taken, if `work` takes long.
pub(crate) async fn waiting<T>(text: &str, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    if let Ok(done) = tokio::time::timeout(PATIENCE, &mut work).await {
        return done;
    }
    let spinner = spinner(text);
    let done = work.await;
    spinner.finish_and_clear();
    done
}

/// A line that turns, for work that says by itself how far it is.
pub(crate) fn spinner(text: &str) -> ProgressBar {
    let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    spinner.set_style(style("{spinner} {msg} ({elapsed})"));
    spinner.set_message(text.to_owned());
    spinner.enable_steady_tick(TICK);
    spinner
}

/// Bytes on their way, of how many if that is known; shown if it takes long.
pub(crate) fn bytes(total: Option<u64>) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
    bar.set_style(match total {
        Some(_) => style("{wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {msg}"),
        None => style("{spinner} {bytes} {bytes_per_sec} {msg}"),
    });
    let shown = bar.clone();
    tokio::spawn(async move {
        tokio::time::sleep(PATIENCE).await;
        if !shown.is_finished() {
            shown.set_draw_target(ProgressDrawTarget::stderr());
        }
    });
    bar
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}
