//! What a record asks for, without anyone beside it.

use common::api::installation::AddonInstallation;

use crate::error::OperationError;
use crate::event::Finding;
use crate::intent::Edits;
use crate::records::name_of;
use crate::resolve::{Answers, Resolver};
use crate::resolved::Resolved;

impl Resolver<'_> {
    /// What a record asks for: the version that it names, else the newest that fits. The record stays as it is written.
    ///
    /// # Errors
    /// Its origin cannot be read, or nothing of it fits; the verdict is a denial.
    pub async fn resolve_record(
        &self,
        record: &AddonInstallation,
    ) -> Result<Resolved, OperationError> {
        let namespace = name_of(record).namespace;
        if namespace != self.records.system {
            self.ctx.find(Finding::OtherNamespace(namespace));
        }
        let version = record.spec.addon_ref.version.as_deref();
        let (edits, answers) = (Edits::default(), Answers::new());
        let mut resolved = self.upgrade(record, version, &edits, &answers).await?;
        resolved.keeps_spec = true;
        Ok(resolved)
    }
}
