//! Indexes that rows are found by: a scan knows an index's columns by place, and trusts that every row is in it.

use std::ffi::CStr;

use pgrx::pg_sys;

use super::raw;

/// What has this name in the table's schema, if anything has.
pub unsafe fn named(table: pg_sys::Relation, name: &CStr) -> pg_sys::Oid {
    // SAFETY: the relation is open.
    unsafe { pg_sys::get_relname_relid(name.as_ptr(), (*(*table).rd_rel).relnamespace) }
}

/// Is the table's primary key, not deferrable, on the first so many columns?
pub unsafe fn is_primary_key(table: pg_sys::Relation, columns: usize) -> bool {
    // SAFETY: the relation is open.
    unsafe {
        let index = raw::guarded(|| raw::primary_key(table));
        let columns: Vec<usize> = (0..columns).collect();
        is_whole(table, index, &columns)
    }
}

/// Is it a B-tree of this table, on these columns, counted from 0, in ascending order, with every row in it?
pub unsafe fn is_whole(table: pg_sys::Relation, index: pg_sys::Oid, columns: &[usize]) -> bool {
    // SAFETY: the relation is open; an index among its own is open while it is looked at, and has as many columns as it says.
    unsafe {
        if !indexes_of(table).any(|own| own == index) {
            return false;
        }
        let index = pg_sys::index_open(index, pg_sys::AccessShareLock as i32);
        let form = &*(*index).rd_index;
        let count = form.indnkeyatts as usize;
        let places = form.indkey.values.as_slice(count);
        let whole = form.indisvalid
            && form.indisready
            && form.indimmediate
            && (*(*index).rd_rel).relam == pg_sys::BTREE_AM_OID
            && pg_sys::RelationGetIndexPredicate(index).is_null()
            && count == columns.len()
            && places
                .iter()
                .zip(columns)
                .all(|(place, column)| *place as usize == column + 1)
            && (0..count).all(|column| *(*index).rd_indoption.add(column) == 0);
        pg_sys::index_close(index, pg_sys::AccessShareLock as i32);
        whole
    }
}

/// All indexes of an open table.
pub unsafe fn indexes_of(table: pg_sys::Relation) -> impl Iterator<Item = pg_sys::Oid> {
    // SAFETY: the list is a copy.
    unsafe {
        let list = pg_sys::RelationGetIndexList(table);
        let count = if list.is_null() {
            0
        } else {
            (*list).length as usize
        };
        (0..count).map(move |i| (*(*list).elements.add(i)).oid_value)
    }
}
