// The texts of the page of a link by which people without an account send files.

export const send = {
  title: "Send files",
  sent: " asks you for files",
  ended_title: "This link has ended",
  ended: "No files can be sent here any longer. Make sure the address is complete, or ask whoever sent you the link to "
    + "make another one.",
  taken: ({ types, limit }) => `${types}, up to ${limit} each.`,
  left: ({ files, count, bytes }) => `${count} ${files === 1 ? "file" : "files"} can still be sent, ${bytes} in all.`,
  begun: "Nothing more is taken by this link. A file that was not sent whole goes on if you choose it again.",
  full: "Nothing more is taken by this link: all that it takes has come.",
  choose: "Choose files",
  folder: "Choose a folder",
  drop: "You can also drop files or folders anywhere on this page.",
  until: "The link works until",
  too_large: ({ bytes }) => `This link takes only ${bytes} more.`,
  no_room: "There is no room for this file at the moment. Tell whoever asked you for it.",
};
