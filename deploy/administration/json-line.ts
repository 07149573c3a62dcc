/**
 * Controls from U+007F on, and marks that turn the direction of text: `JSON.stringify` leaves them as they are, and a terminal
 * obeys them (U+009B is as good as `ESC [`). URLs of endpoints and the platform's texts come from strangers.
 */
const obeyed = /[\x7f-\x9f\p{Bidi_Control}\p{Zl}\p{Zp}]/gu

/** A value as one line of JSON that can be shown in a terminal. */
export const jsonLine = (value: unknown): string => JSON.stringify(value).replaceAll(obeyed, escaped)

/** None of them is beyond U+FFFF, or stands outside a text. */
const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
