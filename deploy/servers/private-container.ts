import { statSync } from 'node:fs'
import { GenericContainer, getContainerRuntimeClient } from 'testcontainers'

/**
 * A container for one developer. Its ports are open to this machine alone, where the engine is on it (Docker opens them to the
 * whole network otherwise). It runs as whom its folder of data belongs to, so that this one can also delete what it wrote.
 */
export class PrivateContainer extends GenericContainer {
  readonly #folder: string

  constructor(image: string, folder: string) {
    super(image)
    this.#folder = folder
  }

  protected override async beforeContainerCreated() {
    const { container, info } = await getContainerRuntimeClient()
    if (isLoopback(info.containerRuntime.host)) this.#openToThisMachine()
    const { SecurityOptions = [] } = await container.dockerode.info()
    const { uid, gid } = statSync(this.#folder)
    // Root of a rootless engine is who runs it; the engine of a virtual machine tells everybody that the files are his own.
    const isRootless = SecurityOptions.some((option: string) => option.includes('rootless'))
    if (process.platform === 'linux' && !isRootless && uid !== 0 && uid === process.getuid?.())
      this.withUser(`${uid}:${gid}`)
  }

  #openToThisMachine() {
    const bindings: Record<string, Array<{ HostPort: string }>> = this.hostConfig.PortBindings ?? {}
    this.hostConfig.PortBindings = Object.fromEntries(
      Object.entries(bindings).map(([port, places]) => [
        port,
        places.map((place) => ({ ...place, HostIp: '127.0.0.1' })),
      ]),
    )
  }
}

const isLoopback = (host: string) => host === 'localhost' || host === '127.0.0.1'
