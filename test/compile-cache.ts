/** For a program of ours that is given no other environment: it need not compile again what others have. */
export const compileCache: NodeJS.ProcessEnv = { NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] }
