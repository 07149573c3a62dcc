/** Whether Postgres refused a row by the constraint or unique index of that name. */
export const violates = (err: unknown, constraint: string): boolean =>
  err instanceof Error && 'constraint_name' in err && err.constraint_name === constraint
