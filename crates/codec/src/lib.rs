//! Strict protobuf decoding of requests: unknown fields and repeated singular
//! fields are refused with their path. Knows no service.

use std::marker::PhantomData;

use bytes::Buf as _;
use exequatur_fault::{Fault, Reason};
use prost::{Message, Name};
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

mod strict;
#[cfg(test)]
mod tests;
pub use strict::{Violation, check};

/// The codec of every generated server.
#[derive(Debug, Clone)]
pub struct StrictCodec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for StrictCodec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for StrictCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Name + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = Plain<T>;
    type Decoder = Strict<U>;

    fn encoder(&mut self) -> Self::Encoder {
        Plain(PhantomData)
    }

    fn decoder(&mut self) -> Self::Decoder {
        Strict(PhantomData)
    }
}

/// Encodes as prost does.
#[derive(Debug)]
pub struct Plain<T>(PhantomData<T>);

impl<T: Message> Encoder for Plain<T> {
    type Item = T;
    type Error = Status;

    fn encode(&mut self, item: T, buf: &mut EncodeBuf<'_>) -> Result<(), Status> {
        item.encode(buf).map_err(|_| Status::internal("the answer does not fit its buffer"))
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::default()
    }
}

/// Checks the bytes against the descriptor, then decodes as prost does.
#[derive(Debug)]
pub struct Strict<U>(PhantomData<U>);

impl<U: Message + Default + Name> Decoder for Strict<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, buf: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        let bytes = buf.copy_to_bytes(buf.remaining());
        check(&U::full_name(), &bytes)
            .map_err(|v| Fault::new(Reason::InvalidRequest, v.to_string()).with("field", v.path))?;
        U::decode(bytes).map(Some).map_err(|_| {
            Fault::new(Reason::InvalidRequest, "the request is no valid protobuf message of this method")
                .into()
        })
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::default()
    }
}
