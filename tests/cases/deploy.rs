//! `deploy/base` as it is: applied by kubectl, its Pods run by the kubelet of the harness, its Service asked by the API server.

mod applied;
mod certificates;
mod image;
mod init;
pub(crate) mod load;
mod variants;
pub(crate) mod world;
