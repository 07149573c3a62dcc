// Preloaded into the services (`node --import`): when the process that started them dies without stopping them, as by a
// kill -9, the channel to it closes, and they stop by themselves instead of holding their ports.
process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'))
process.channel?.unref()
