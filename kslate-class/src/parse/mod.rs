//! From the text of a definition to a class, or to all that is wrong with it.

mod reader;
mod scalar;
mod tree;

pub(crate) use tree::{Entry, Kind, Node};

use crate::check;
use crate::fault::{Fault, Faults};
use crate::model::Class;

/// The largest source, in bytes.
const MAX_BYTES: usize = 256 * 1024;

/// Reads a definition, YAML or JSON. On failure every fault of it, in the order of the lines.
///
/// Work and memory are bounded: 256 KiB, 64 levels, 20,000 nodes; what exceeds a bound is one fault.
pub fn parse(source: &str) -> Result<Class, Vec<Fault>> {
    if source.len() > MAX_BYTES {
        let message = format!(
            "the definition has {} bytes; at most {MAX_BYTES} ({} KiB) are read",
            source.len(),
            MAX_BYTES / 1024
        );
        return Err(vec![Fault {
            line: None,
            path: String::new(),
            message,
        }]);
    }
    let mut faults = Faults::default();
    let class = match reader::read(source, &mut faults) {
        Ok(Some(root)) => check::class(&root, &mut faults),
        Ok(None) => {
            faults.add(
                1,
                "",
                "the definition is empty; it needs class, roles and fields",
            );
            None
        }
        Err(reader::OverBudget(fault)) => return Err(vec![fault]),
        Err(reader::Unreadable) => None,
    };
    match class {
        Some(class) if faults.is_empty() => Ok(class),
        _ => Err(faults.into_ordered()),
    }
}
