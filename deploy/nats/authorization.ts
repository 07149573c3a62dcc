import { type NatsUser, natsUsers, permissionsOf } from './permissions.ts'

/** The `authorization` block of a nats-server's configuration, with the key (or the variable that holds it) of each user. */
export function authorizationOf(keyOf: (user: NatsUser) => string): string {
  return `authorization {
  users: [
${natsUsers.map((user) => userOf(user, keyOf(user))).join('\n')}
  ]
}
`
}

function userOf(user: NatsUser, key: string) {
  const { publish, subscribe } = permissionsOf(user)
  return `    {
      # ${user}
      nkey: ${key}
      permissions: {
        publish: { allow: [${listed(publish)}] }
        subscribe: { allow: [${listed(subscribe)}] }
      }
    }`
}

const listed = (subjects: string[]) => `\n${subjects.map((subject) => `          "${subject}"`).join('\n')}\n        `

/** The variable of the environment that holds a user's public key, where the configuration is a file. */
export const keyVariableOf = (user: NatsUser): string => `NATS_NKEY_${user.toUpperCase()}`
