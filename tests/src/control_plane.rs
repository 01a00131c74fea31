//! A real control plane: etcd, kube-apiserver, kube-controller-manager and kube-scheduler, with a node that is played in this process.

mod alone;
pub mod audit;
pub mod cluster;
mod components;
pub mod definitions;
pub mod pki;

pub use addons_control_plane::programs as binaries;
pub use alone::Own;
pub use cluster::{ControlPlane, Options, unique};
