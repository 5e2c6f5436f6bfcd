/** The version of this Edubba, which is that of package.json. */
export const VERSION = '0.1.0';
