//! A stream that knows how many bytes it took for sending, and which were the last.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const TAIL: usize = 5;

#[derive(Debug, Default)]
struct Seen {
    count: u64,
    tail: Vec<u8>,
}

/// What went into a stream; survives it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Written(Arc<Mutex<Seen>>);

impl Written {
    /// Bytes taken so far.
    pub(crate) fn count(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).count
    }

    /// Whether the last bytes taken are these (at most five).
    pub(crate) fn ends_with(&self, tail: &[u8]) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).tail.ends_with(tail)
    }

    fn note(&self, bytes: &[u8]) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.count = seen.count.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        seen.tail.extend_from_slice(bytes);
        let surplus = seen.tail.len().saturating_sub(TAIL);
        seen.tail.drain(..surplus);
    }
}

/// See the module.
pub(crate) struct Counted<S> {
    inner: S,
    written: Written,
}

impl<S> Counted<S> {
    pub(crate) fn new(inner: S) -> (Self, Written) {
        let written = Written::default();
        (Self { inner, written: written.clone() }, written)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_write(cx, buf);
        if let Poll::Ready(Ok(taken)) = &result {
            self.written.note(buf.get(..*taken).unwrap_or(buf));
        }
        result
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
