//! One request of an operation, known by what it is and not by its number: other tests add kinds to the cluster, and
//! removing a namespace asks for each of them.

use crate::proxy::{Action, Fault, Seen};

const UNIQUE: &str = "UNIQUE";
/// How the API group of every test ends.
const GROUPS: &str = ".example.test";

/// The `nth` request with this method and path.
#[derive(Clone, Debug)]
pub struct Point {
    method: String,
    path: String,
    nth: usize,
}

impl Point {
    /// The requests of a run of the user whose namespace is `unique`; those for kinds of other tests are left out.
    pub fn all(seen: &[Seen], unique: &str) -> Vec<Self> {
        let mut points = Vec::new();
        for (i, request) in seen.iter().enumerate() {
            let path = path(&request.uri);
            let before = seen.iter().take(i);
            let same =
                before.filter(|other| other.method == request.method && other.uri.contains(path));
            let nth = same.count() + 1;
            let path = path.replace(unique, UNIQUE);
            if path.contains(GROUPS) && !path.contains(&format!("{UNIQUE}{GROUPS}")) {
                continue;
            }
            points.push(Self {
                method: request.method.clone(),
                path,
                nth,
            });
        }
        points
    }

    /// Whether it is a request for this very path, in which `UNIQUE` stands for the namespace of the user.
    pub fn is_for(&self, path: &str) -> bool {
        self.path == path
    }

    /// What breaks this request of the user whose namespace is `unique`.
    pub fn fault(&self, action: Action, unique: &str) -> Fault {
        Fault::at(self.nth, action)
            .method(&self.method)
            .path(&self.path.replace(UNIQUE, unique))
    }
}

/// Without the query, in which there are versions and times.
fn path(uri: &str) -> &str {
    uri.split_once('?').map_or(uri, |(path, _)| path)
}
