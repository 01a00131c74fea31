//! A real control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok.

pub mod audit;
pub mod cluster;
mod components;
pub mod definitions;
pub mod pki;

pub use addons_control_plane::programs as binaries;
pub use cluster::{ControlPlane, Options, unique};
