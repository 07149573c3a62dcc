/** SQL for the first ten characters of a ULID: 48 bits of milliseconds (an expression of type bigint), five a character. */
export const timeCharacters = (ms: string): string =>
  Array.from(
    { length: 10 },
    (_, n) => `substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', ((${ms} >> ${5 * (9 - n)}) & 31)::int + 1, 1)`,
  ).join(' || ')

/** SQL for the 16 characters behind them. */
export const countCharacters = (n: string): string => `upper(lpad(to_hex(${n}), 16, '0'))`

export const dayMs = 24 * 3600 * 1000
