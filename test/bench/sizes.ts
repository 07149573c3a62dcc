import type { Options } from './options.ts'

/** Rows of the sides that are compared where depth is measured. */
export const sizesOf = ({ rows }: Pick<Options, 'rows'>): { few: number; many: number } => ({
  few: Math.min(10_000, rows / 10),
  many: rows,
})
