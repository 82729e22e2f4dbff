//! Who is calling: the role of the outermost user, or the identity that the gateway vouches for.

use std::ffi::CStr;

use kslate_class::Class;
use pgrx::pg_sys;

use crate::error::{Code, Failure, Outcome};

/// The database role whose members may name the identity they act for.
const GATEWAY: &CStr = c"kslate_gateway";
const MAX_IDENTITY_BYTES: usize = 256;

/// An identity that has been proven: `pg:<role>` or, through the gateway, `apikey:<name>`.
#[derive(Clone, Debug)]
pub struct Caller {
    pub identity: String,
}

impl Caller {
    /// Finds out who is calling. `identity` is the functions' last argument.
    ///
    /// The outermost user is what SET ROLE set, else the login; a SECURITY DEFINER function in between does not change it.
    /// Inside a security-restricted operation (an index function run by somebody's ANALYZE) that user did not ask for this
    /// call, so nobody is there to be named.
    pub fn identify(identity: Option<&str>) -> Outcome<Caller> {
        // SAFETY: reads the backend's state.
        if unsafe { pg_sys::InSecurityRestrictedOperation() } {
            return Err(Failure::new(
                Code::ScopeDenied,
                "kslate cannot be called inside a security-restricted operation",
            ));
        }
        // SAFETY: as above.
        let outer = unsafe { pg_sys::GetOuterUserId() };
        match identity {
            None => Ok(Caller {
                identity: format!("pg:{}", role_name(outer)?),
            }),
            Some(identity) => {
                if !is_gateway(outer) {
                    return Err(Failure::new(
                        Code::ScopeDenied,
                        "only members of kslate_gateway may name an identity: leave the argument out, you are judged as your database role",
                    ));
                }
                let name = identity.strip_prefix("apikey:").unwrap_or("");
                if name.is_empty()
                    || identity.len() > MAX_IDENTITY_BYTES
                    || identity
                        .chars()
                        .any(|c| c.is_control() || c.is_whitespace())
                {
                    return Err(Failure::new(
                        Code::ScopeDenied,
                        "identity must be apikey:<name>, without blanks, of at most 256 bytes",
                    ));
                }
                Ok(Caller {
                    identity: identity.to_owned(),
                })
            }
        }
    }

    /// The roles held in a class, in the order of its definition. None at all is SCOPE_DENIED.
    pub fn roles(&self, class: &Class, record: Option<&str>) -> Outcome<Vec<String>> {
        let roles: Vec<String> = class
            .roles_of(&self.identity)
            .into_iter()
            .map(str::to_owned)
            .collect();
        if roles.is_empty() {
            let all: Vec<&str> = class.roles.iter().map(|role| role.name.as_str()).collect();
            let failure = Failure::new(
                Code::ScopeDenied,
                format!(
                    "{} holds no role in {}; its roles: {}. Have the class name the identity under one of them",
                    self.identity,
                    class.name,
                    all.join(", ")
                ),
            );
            let failure = match record {
                Some(record) => failure.record(record),
                None => failure,
            };
            return Err(failure
                .with("needs_one_of", all)
                .with("roles_held", [(); 0]));
        }
        Ok(roles)
    }
}

/// The login behind the session: it stays in history, so that the person behind a SET ROLE is not lost.
pub fn login() -> Outcome<String> {
    // SAFETY: reads the backend's state.
    role_name(unsafe { pg_sys::GetSessionUserId() })
}

fn role_name(role: pg_sys::Oid) -> Outcome<String> {
    // SAFETY: the name is palloc'ed by PostgreSQL and copied here.
    unsafe {
        let name = pg_sys::GetUserNameFromId(role, true);
        if name.is_null() {
            return Err(Failure::new(
                Code::ScopeDenied,
                "your database role was dropped",
            ));
        }
        let copy = CStr::from_ptr(name).to_string_lossy().into_owned();
        pg_sys::pfree(name.cast());
        Ok(copy)
    }
}

/// A superuser is no gateway by being one.
fn is_gateway(role: pg_sys::Oid) -> bool {
    // SAFETY: catalog look-ups.
    unsafe {
        let gateway = pg_sys::get_role_oid(GATEWAY.as_ptr(), true);
        gateway != pg_sys::InvalidOid && pg_sys::is_member_of_role_nosuper(role, gateway)
    }
}
