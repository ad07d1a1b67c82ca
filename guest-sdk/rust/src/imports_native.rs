// SPDX-License-Identifier: Apache-2.0
//! The operations of a native build, which have only a name.

use crate::host::Op;

macro_rules! operations {
    ($($constant:ident $name:literal)*) => {
        $(pub(crate) const $constant: Op = Op { name: $name };)*
    };
}

operations! {
    API_GET "api_get"
    API_LIST "api_list"
    API_CREATE "api_create"
    API_UPDATE "api_update"
    API_PATCH "api_patch"
    API_APPLY "api_apply"
    API_DELETE "api_delete"
    CACHE_GET "cache_get"
    CACHE_LIST "cache_list"
    EVENT_RECORD "event_record"
    CONFIG_GET "config_get"
}

/// A native program is no instance of a controller.
pub(crate) fn controller() -> String {
    String::new()
}
