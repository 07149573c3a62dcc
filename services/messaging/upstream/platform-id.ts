import { z } from 'zod'

/** The platform's id of a message: some 60 characters, and an index holds no more than 2,700 bytes. */
export const platformId = z.string().min(1).max(500)
