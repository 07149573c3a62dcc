/**
 * JSON as the platform writes it in callbacks, and signs it: everything beyond ASCII escaped, `Zo\u00eb`. There are
 * receivers that can verify nothing else. A character is a byte.
 */
export const asciiJson = (value: unknown) =>
  // Most of what is told is ASCII already.
  JSON.stringify(value).replaceAll(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
