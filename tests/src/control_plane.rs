//! A real control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok.

pub mod audit;
pub mod binaries;
pub mod cluster;
mod components;
pub mod definitions;
pub mod pki;

pub use cluster::{ControlPlane, Options, unique};
