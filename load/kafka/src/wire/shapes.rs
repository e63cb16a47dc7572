//! Validation of array lengths in responses, before the protocol library decodes them.
//!
//! The library allocates room for as many elements as a response claims, before it reads the first: four corrupt bytes
//! could request more memory than there is. So each response is first walked through without allocating.

use super::{Malformed, WireReader};

/// Field of a response that exists from a version on; no version read here drops a field of an earlier one.
struct Part {
    since: i16,
    kind: Kind,
}

enum Kind {
    /// Fixed number of bytes.
    Fixed(usize),
    Text,
    Bytes,
    Array(&'static [Part]),
}

/// Fields of a response, and its first flexible version (compact lengths, tagged fields).
struct Shape {
    flexible_from: i16,
    parts: &'static [Part],
}

const NEVER: i16 = i16::MAX;

const fn fixed(bytes: usize) -> Part {
    Part { since: 0, kind: Kind::Fixed(bytes) }
}

const fn text() -> Part {
    Part { since: 0, kind: Kind::Text }
}

const fn bytes() -> Part {
    Part { since: 0, kind: Kind::Bytes }
}

const fn array(parts: &'static [Part]) -> Part {
    Part { since: 0, kind: Kind::Array(parts) }
}

impl Part {
    const fn from(self, version: i16) -> Self {
        Self { since: version, ..self }
    }
}

const METADATA: Shape = Shape {
    flexible_from: 9,
    parts: &[
        fixed(4).from(3),
        array(&[fixed(4), text(), fixed(4), text().from(1)]),
        text().from(2),
        fixed(4).from(1),
        array(&[
            fixed(2),
            text(),
            fixed(1).from(1),
            array(&[fixed(10), fixed(4).from(7), array(&[fixed(4)]), array(&[fixed(4)]), array(&[fixed(4)]).from(5)]),
            fixed(4).from(8),
        ]),
        fixed(4).from(8),
    ],
};

const LIST_OFFSETS: Shape =
    Shape { flexible_from: 6, parts: &[fixed(4).from(2), array(&[text(), array(&[fixed(22), fixed(4).from(4)])])] };

const OFFSET_COMMIT: Shape =
    Shape { flexible_from: 8, parts: &[fixed(4).from(3), array(&[text(), array(&[fixed(6)])])] };

const OFFSET_FETCH: Shape = Shape {
    flexible_from: 6,
    parts: &[
        fixed(4).from(3),
        array(&[text(), array(&[fixed(12), fixed(4).from(5), text(), fixed(2)])]),
        fixed(2).from(2),
    ],
};

const JOIN_GROUP: Shape = Shape {
    flexible_from: 6,
    parts: &[fixed(4).from(2), fixed(6), text(), text(), text(), array(&[text(), text().from(5), bytes()])],
};

const SASL_HANDSHAKE: Shape = Shape { flexible_from: NEVER, parts: &[fixed(2), array(&[text()])] };

const API_VERSIONS: Shape = Shape { flexible_from: 3, parts: &[fixed(2), array(&[fixed(6)]), fixed(4).from(1)] };

/// Flexible versions are not used: they have a tagged field that the library reads at whatever length it claims.
const CREATE_TOPICS: Shape = Shape { flexible_from: NEVER, parts: &[fixed(4), array(&[text(), fixed(2), text()])] };

const DELETE_TOPICS: Shape =
    Shape { flexible_from: 4, parts: &[fixed(4), array(&[text(), fixed(16).from(6), fixed(2), text().from(5)])] };

const DESCRIBE_CONFIGS: Shape = Shape {
    flexible_from: 4,
    parts: &[
        fixed(4),
        array(&[
            fixed(2),
            text(),
            fixed(1),
            text(),
            array(&[text(), text(), fixed(3), array(&[text(), text(), fixed(1)]), fixed(1).from(3), text().from(3)]),
        ]),
    ],
};

const DELETE_GROUPS: Shape = Shape { flexible_from: 2, parts: &[fixed(4), array(&[text(), fixed(2)])] };

/// Assignment that the group leader gives to a member.
const ASSIGNMENT: Shape = Shape { flexible_from: NEVER, parts: &[array(&[text(), array(&[fixed(4)])]), bytes()] };

/// Layout of a response by API key; None for responses without an array.
fn shape(api: i16) -> Option<&'static Shape> {
    Some(match api {
        2 => &LIST_OFFSETS,
        3 => &METADATA,
        8 => &OFFSET_COMMIT,
        9 => &OFFSET_FETCH,
        11 => &JOIN_GROUP,
        17 => &SASL_HANDSHAKE,
        18 => &API_VERSIONS,
        19 => &CREATE_TOPICS,
        20 => &DELETE_TOPICS,
        32 => &DESCRIBE_CONFIGS,
        42 => &DELETE_GROUPS,
        _ => return None,
    })
}

/// Checks that a response (after its header) is as long as its arrays claim.
///
/// # Errors
/// `Malformed` when it ends within a field, or an array claims too much.
pub(crate) fn check_answer(api: i16, version: i16, answer: &[u8]) -> Result<(), Malformed> {
    shape(api).map_or(Ok(()), |shape| walk(shape, version, answer))
}

/// Checks that a consumer group assignment (after its version) is as long as its arrays claim.
///
/// # Errors
/// `Malformed` when it ends within a field, or an array claims too much.
pub(crate) fn check_assignment(assignment: &[u8]) -> Result<(), Malformed> {
    walk(&ASSIGNMENT, 0, assignment)
}

fn walk(shape: &Shape, version: i16, bytes: &[u8]) -> Result<(), Malformed> {
    let mut walker = Walker { reader: WireReader::new(bytes), version, flexible: version >= shape.flexible_from };
    walker.structure(shape.parts)
}

struct Walker<'a> {
    reader: WireReader<'a>,
    version: i16,
    flexible: bool,
}

impl Walker<'_> {
    fn structure(&mut self, parts: &[Part]) -> Result<(), Malformed> {
        for part in parts {
            if self.version >= part.since {
                self.part(part)?;
            }
        }
        if self.flexible { self.tags() } else { Ok(()) }
    }

    fn part(&mut self, part: &Part) -> Result<(), Malformed> {
        match part.kind {
            Kind::Fixed(bytes) => self.reader.take(bytes).map(drop),
            Kind::Text | Kind::Bytes if self.flexible => {
                let length = self.varint()?.saturating_sub(1);
                self.reader.take(length).map(drop)
            }
            Kind::Text => self.reader.int16().and_then(|length| self.reader.take(length.max(0) as usize)).map(drop),
            Kind::Bytes => self.reader.bytes().map(drop),
            Kind::Array(element) => {
                let count = if self.flexible { self.varint()?.saturating_sub(1) } else { self.reader.count()? };
                // Each element consumes bytes, so the loop ends with the response.
                (0..count).try_for_each(|_| self.element(element))
            }
        }
    }

    fn element(&mut self, parts: &[Part]) -> Result<(), Malformed> {
        match parts {
            // Arrays of plain numbers have no tagged fields in their elements.
            [Part { kind: Kind::Fixed(bytes), .. }] => self.reader.take(*bytes).map(drop),
            _ => self.structure(parts),
        }
    }

    fn tags(&mut self) -> Result<(), Malformed> {
        for _ in 0..self.varint()? {
            self.varint()?;
            let length = self.varint()?;
            self.reader.take(length)?;
        }
        Ok(())
    }

    /// Unsigned varint: seven bits a byte, low ones first, at most five bytes.
    fn varint(&mut self) -> Result<usize, Malformed> {
        let mut value = 0;
        for place in 0..5 {
            let [byte] = self.reader.array()?;
            value |= usize::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::messages::metadata_response::{
        MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
    };
    use kafka_protocol::messages::{MetadataResponse, TopicName};
    use kafka_protocol::protocol::{Encodable, StrBytes};

    const METADATA_API: i16 = 3;

    fn metadata(version: i16) -> Vec<u8> {
        let partition = MetadataResponsePartition::default().with_replica_nodes(vec![1.into(), 2.into()]);
        let topic = MetadataResponseTopic::default()
            .with_name(Some(TopicName(StrBytes::from_static_str("a"))))
            .with_partitions(vec![partition.clone(), partition]);
        let broker = MetadataResponseBroker::default().with_host(StrBytes::from_static_str("localhost"));
        let answer = MetadataResponse::default().with_brokers(vec![broker]).with_topics(vec![topic]);
        let mut bytes = Vec::new();
        answer.encode(&mut bytes, version).unwrap();
        bytes
    }

    #[test]
    fn an_answer_is_as_long_as_its_arrays_say_and_any_part_of_it_is_not() {
        for version in 0..=9 {
            let bytes = metadata(version);
            assert_eq!(check_answer(METADATA_API, version, &bytes), Ok(()), "version {version}");
            for length in 0..bytes.len() {
                assert_eq!(check_answer(METADATA_API, version, &bytes[..length]), Err(Malformed));
            }
        }
    }

    #[test]
    fn more_elements_than_there_are_bytes_for_are_malformed() {
        let mut bytes = metadata(0);
        bytes[..4].copy_from_slice(&i32::MAX.to_be_bytes());
        assert_eq!(check_answer(METADATA_API, 0, &bytes), Err(Malformed));
        assert_eq!(check_assignment(&[0x7f, 0xff, 0xff, 0xff, 0, 0]), Err(Malformed));
    }
}
