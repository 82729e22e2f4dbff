//! How deep a jsonb is nested and how long its text can be, read off its binary form (PostgreSQL's utils/jsonb.h and
//! utils/adt/numeric.c) without writing the text, which costs more than storing the value.

/// Of an entry of a container.
const LENGTH: u32 = 0x0FFF_FFFF;
const KIND: u32 = 0x7000_0000;
const IS_STRING: u32 = 0x0000_0000;
const IS_NUMERIC: u32 = 0x1000_0000;
const IS_CONTAINER: u32 = 0x5000_0000;
/// The length is that of all entries so far.
const IS_END: u32 = 0x8000_0000;
/// Of a container.
const COUNT: u32 = 0x0FFF_FFFF;
const IS_SCALAR: u32 = 0x1000_0000;
const IS_OBJECT: u32 = 0x2000_0000;

/// Has the value surely no more than `most` bytes of text? False may be only doubt, as for one deeper than `levels`.
pub fn fits(container: &[u8], levels: usize, most: usize) -> bool {
    cfg!(target_endian = "little")
        && longest(container, levels).is_some_and(|longest| longest <= most)
}

/// Is the value nested deeper than `levels`?
pub fn is_deeper(container: &[u8], levels: usize) -> bool {
    let Some(levels) = levels.checked_sub(1) else {
        return true;
    };
    let mut entries = Entries::of(container).into_iter().flatten().flatten();
    entries.any(|entry| entry.kind == IS_CONTAINER && is_deeper(entry.payload, levels))
}

/// Is the value an object?
pub fn is_object(container: &[u8]) -> bool {
    word(container, 0).is_some_and(|head| head & IS_OBJECT != 0)
}

/// Is the value this string?
pub fn is_string(container: &[u8], text: &str) -> bool {
    let scalar = word(container, 0).is_some_and(|head| head & IS_SCALAR != 0);
    let first = Entries::of(container).and_then(|mut entries| entries.next().flatten());
    scalar && first.is_some_and(|only| only.kind == IS_STRING && only.payload == text.as_bytes())
}

/// Has the object this key?
pub fn has_key(object: &[u8], key: &str) -> bool {
    let keys = word(object, 0).map_or(0, |head| (head & COUNT) as usize);
    let mut entries = Entries::of(object).into_iter().flatten().take(keys);
    entries.any(|entry| entry.is_some_and(|entry| entry.payload == key.as_bytes()))
}

/// A bound of the text's length; None where it is deeper than `levels`, or not understood.
fn longest(container: &[u8], levels: usize) -> Option<usize> {
    let levels = levels.checked_sub(1)?;
    let mut bytes = 2_usize;
    for entry in Entries::of(container)? {
        let Entry { kind, payload } = entry?;
        let value = match kind {
            // Each byte may be written as \u00XX.
            IS_STRING => 2 + 6 * payload.len(),
            IS_NUMERIC => longest_number(payload)?,
            IS_CONTAINER => longest(payload, levels)?,
            _ => 5,
        };
        // A colon or a comma, and a blank.
        bytes = bytes.checked_add(value)?.checked_add(2)?;
    }
    Some(bytes)
}

/// Four digits for each place before the point, and as many after it as are shown.
fn longest_number(numeric: &[u8]) -> Option<usize> {
    if word(numeric, 0)? & 3 != 0 {
        // Compressed, or with a short length word: never so in a jsonb.
        return None;
    }
    let head = half(numeric, 4)?;
    let (weight, shown) = match head & 0xC000 {
        0x8000 => {
            let negative = head & 0x0040 != 0;
            let weight = if negative { 0 } else { head & 0x003F };
            (usize::from(weight), (head & 0x1F80) >> 7)
        }
        0xC000 => return None,
        _ => {
            let weight = half(numeric, 6)? as i16;
            (usize::try_from(weight).unwrap_or(0), head & 0x3FFF)
        }
    };
    // A sign, a point and a zero before it.
    Some(4 * (weight + 1) + usize::from(shown) + 3)
}

struct Entry<'d> {
    kind: u32,
    payload: &'d [u8],
}

/// The entries of a container, in the order they are stored: of an object all keys, then all values.
struct Entries<'d> {
    container: &'d [u8],
    count: usize,
    next: usize,
    end: usize,
}

impl<'d> Entries<'d> {
    fn of(container: &'d [u8]) -> Option<Entries<'d>> {
        let head = word(container, 0)?;
        let each = if head & IS_OBJECT != 0 { 2 } else { 1 };
        Some(Entries {
            container,
            count: each * (head & COUNT) as usize,
            next: 0,
            end: 0,
        })
    }

    fn entry(&mut self) -> Option<Entry<'d>> {
        let entry = word(self.container, 4 + 4 * self.next)?;
        self.next += 1;
        let (start, length) = (self.end, (entry & LENGTH) as usize);
        self.end = if entry & IS_END != 0 {
            length
        } else {
            start + length
        };
        let kind = entry & KIND;
        // Numbers and containers are aligned to four bytes.
        let start = match kind {
            IS_NUMERIC | IS_CONTAINER => start.next_multiple_of(4),
            _ => start,
        };
        let data = self.container.get(4 + 4 * self.count..)?;
        let payload = data.get(start..self.end)?;
        Some(Entry { kind, payload })
    }
}

impl<'d> Iterator for Entries<'d> {
    /// None for what is not understood.
    type Item = Option<Entry<'d>>;

    fn next(&mut self) -> Option<Self::Item> {
        (self.next < self.count).then(|| self.entry())
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_ne_bytes(bytes.try_into().ok()?))
}
