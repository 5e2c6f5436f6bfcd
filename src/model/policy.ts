/**
 * Rights: which members have which roles on a resource. Roles, and what they allow, are the concern of the room
 * `access`.
 */

/** Members: principals (`token:NAME`, `jwt:SUBJECT`, `cert:NAME`), `allUsers` or `allAuthenticatedUsers`. */
export interface PolicyBinding {
  readonly role: string;
  readonly members: readonly string[];
}

/** Without bindings it is as if there were none. */
export interface Policy {
  readonly bindings: readonly PolicyBinding[];
}
