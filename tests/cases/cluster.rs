//! Tests on a real control plane: `cargo test -p addons-tests --test cluster`.

mod adopt;
mod browser;
mod bypass;
mod catalogue;
mod channels;
mod clusters;
mod core_addons;
mod crash;
mod definitions;
mod deploy;
mod directories;
mod distribution;
mod doctor;
mod engine;
mod events;
mod facts;
mod faults;
mod gitops;
mod harness;
#[path = "helm/on_cluster.rs"]
mod helm;
mod history;
mod hostile;
mod local;
mod main_job;
mod matrix;
mod metallb;
mod ordering;
mod plans;
mod policy;
mod preflight;
mod reach;
mod reconcile;
mod releases;
mod restored;
mod rollout;
mod rotation;
mod rules;
mod safety;
mod scale;
mod soak;
mod trust;
mod upgrades;
#[path = "values/on_cluster.rs"]
mod values;
mod webhook;
