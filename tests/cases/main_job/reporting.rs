//! Waits for what an object does not say itself: controllers that report later, Services behind webhooks, storage classes.

use addons_tests::until::until;
use anyhow::{Result, ensure};

use super::stage::{Stage, deployment};
