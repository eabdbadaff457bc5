//! QR codes.

use std::fmt::Write;

use qrcodegen::{QrCode, QrCodeEcc};

use crate::error::Error;

/// The empty border that the standard asks for around a QR code, in modules (ISO/IEC 18004, 6.3.8).
const BORDER: i32 = 4;

/// The QR code of a text, as SVG without a size of its own. A row of dark modules beside each other is one rectangle.
/// Fails if the text is longer than a QR code can hold, 2,331 bytes.
pub fn qr_svg(text: &str) -> Result<String, Error> {
    let code = QrCode::encode_text(text, QrCodeEcc::Medium);
    let code = code.map_err(|e| Error::Internal(format!("QR code: {e}")))?;
    let mut dark = String::new();
    for y in 0..code.size() {
        let mut x = 0;
        while x < code.size() {
            let width = (x..code.size()).take_while(|x| code.get_module(*x, y)).count() as i32;
            if width > 0 {
                // Writing to a string never fails.
                let _ = write!(dark, "M{} {}h{width}v1h-{width}z", x + BORDER, y + BORDER);
            }
            x += width + 1;
        }
    }
    let side = code.size() + 2 * BORDER;
    let head = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {side} {side}" shape-rendering="crispEdges">"#
    );
    let light = format!(r##"<path fill="#fff" d="M0 0h{side}v{side}h-{side}z"/>"##);
    Ok([head, light, format!(r#"<path d="{dark}"/></svg>"#)].concat())
}
