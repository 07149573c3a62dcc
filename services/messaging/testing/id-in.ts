/** What was made, by a whole answer. */
export const idIn = (body: Uint8Array): string =>
  (JSON.parse(Buffer.from(body).toString()) as { data: { id: string } }).data.id
